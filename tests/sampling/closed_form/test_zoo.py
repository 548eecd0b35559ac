"""Closed forms on all models of the zoo: right wherever they are used."""

import warnings

import pytest

from caveat import MCDropout
from caveat.errors import CaveatError, CaveatWarning
from tests.sampling.comparing import over_zoo
from tests.zoo.specimen import Specimen, tensors

N_DRAWS = 100


@over_zoo(where=lambda s: not s.reaches_python and not s.may_refuse)
def test_agrees_with_the_draws(specimen: Specimen):
    args, kwargs = specimen.inputs(3)
    mc = MCDropout(specimen.build(), seed=2, analytic=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaveatWarning)
        try:
            found = mc.regress(
                *args,
                n_draws=N_DRAWS,
                precision=1.0,
                output=lambda output: tensors(output)[0],
                **kwargs,
            )
        except CaveatError as error:
            pytest.skip(f"no regression: {error}")
    if found.method == "sampled":
        return
    draws = found.draws.float()
    error = draws.std(0) / N_DRAWS**0.5 + 1e-5 * (1e-3 + draws.abs().amax(0))
    assert ((found.mean - draws.mean(0)) / error).abs().max() < 6
    deviation = (draws - draws.mean(0)).square()
    wobble = deviation.std(0) / N_DRAWS**0.5 + 1e-4 * deviation.mean(0) + 1e-9
    gap = found.epistemic_variance - deviation.mean(0)
    assert (gap / wobble).abs().max() < 7
