"""Fresh masks are refused where a fixed density is needed, and nowhere else."""

import jax
import numpyro
import pytest
from numpyro.infer import HMC, MCMC, NUTS, SA, SVI, BarkerMH, Trace_ELBO
from numpyro.infer.autoguide import AutoLaplaceApproximation, AutoNormal
from numpyro.infer.util import initialize_model

from caveat import maxent
from caveat.errors import UnsupportedModelError
from tests.maxent.cases import LABELS, X, logistic

pytestmark = pytest.mark.usefixtures("x64")

FRESH = maxent.posterior(logistic, masks=maxent.Fresh(2))


@pytest.mark.parametrize("kernel", [NUTS, HMC, BarkerMH, SA])
def test_samplers_refuse_fresh_masks(kernel):
    mcmc = MCMC(kernel(FRESH), num_warmup=2, num_samples=2, progress_bar=False)
    with pytest.raises(UnsupportedModelError, match=f"inside {kernel.__name__}") as e:
        mcmc.run(jax.random.PRNGKey(0), X, LABELS)
    assert "naive posterior of eq. 3" in str(e.value)
    assert "Fixed(count, seed=0)" in str(e.value)


def test_a_potential_made_for_another_sampler_refuses_them():
    with pytest.raises(UnsupportedModelError, match="potential energy made by NumPyro"):
        initialize_model(jax.random.PRNGKey(0), FRESH, model_args=(X, LABELS))


@pytest.mark.parametrize("guide", [AutoNormal, AutoLaplaceApproximation])
def test_variational_inference_takes_them(guide):
    svi = SVI(FRESH, guide(FRESH), numpyro.optim.Adam(0.01), Trace_ELBO())
    state = svi.init(jax.random.PRNGKey(0), X, LABELS)
    loss = jax.jit(lambda state: svi.evaluate(state, X, LABELS))
    _, key = jax.random.split(state.rng_key)
    assert loss(state) == loss(state)
    assert loss(state) != loss(state._replace(rng_key=key))
