"""Functions from the linear posterior and from ensembles."""

import numpy as np
import pytest
import torch

from caveat.decisions.thompson_samplers import EnsembleSampler, PosteriorSampler
from caveat.errors import InputTypeError, ParameterError
from caveat.estimators import BayesianDropoutRegression
from tests.statistics import assert_mean_is, assert_variance_is

RNG = np.random.default_rng(0)
X = RNG.normal(1.0, 1.0, (40, 3))
Y = X @ [1.0, -0.5, 0.2] + 2.0 + 0.3 * RNG.normal(size=40)
NEW = np.array([[0.5, -1.0, 2.0], [1.0, 1.0, 1.0]])


@pytest.mark.parametrize(
    "how",
    [
        {"fit_intercept": False},
        {"fit_intercept": True},
        {"fit_intercept": True, "drop_to": "mean"},
    ],
)
def test_functions_have_the_moments_of_the_posterior(how):
    model = BayesianDropoutRegression(0.3, 0.5, **how).fit(X, Y)
    sampler = PosteriorSampler(model.posterior_, seed=1)
    draws = np.stack([sampler.function(t)(NEW) for t in range(3000)])
    assert_mean_is(torch.from_numpy(draws), torch.from_numpy(model.predict(NEW)))
    posterior = model.posterior_
    _, leverage = posterior.predict(NEW, posterior.design.noise.mean)
    expected = posterior.noise_variance * leverage
    assert_variance_is(torch.from_numpy(draws), torch.from_numpy(expected))


def test_draws_are_functions_by_number():
    model = BayesianDropoutRegression(0.3).fit(X, Y)
    one, other = (PosteriorSampler(model.posterior_, seed=s) for s in (1, 2))
    assert np.array_equal(one.function(4)(NEW), one.function(4)(NEW))
    assert not np.allclose(one.function(4)(NEW), one.function(5)(NEW))
    assert not np.allclose(one.function(4)(NEW), other.function(4)(NEW))
    line = one.function(0)(np.array([[0.0] * 3, [1.0] * 3, [2.0] * 3]))
    assert np.diff(line)[0] == pytest.approx(np.diff(line)[1])


def test_members_are_equally_likely():
    sampler = EnsembleSampler([lambda x, k=k: k for k in range(4)], seed=0)
    chosen = torch.tensor([sampler.function(t)(None) for t in range(4000)])
    hits = torch.nn.functional.one_hot(chosen, 4).double()
    assert_mean_is(hits, 0.25)


def test_bad_input():
    with pytest.raises(InputTypeError, match="pass its posterior_"):
        PosteriorSampler(BayesianDropoutRegression())
    with pytest.raises(ParameterError, match="at least one function"):
        EnsembleSampler([])
    with pytest.raises(InputTypeError, match=r"members must be callable\. Got int"):
        EnsembleSampler([torch.sin, 3])
    with pytest.raises(ParameterError, match="at least 0"):
        EnsembleSampler([torch.sin]).function(-1)
