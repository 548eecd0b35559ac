"""Mean and variance of laws, against their own samples."""

import pytest
import torch

from caveat.sampling.closed_form.beliefs import NotSupportedError
from caveat.sampling.closed_form.laws import law_moments
from caveat.sampling.noise import (
    Exponential,
    Integers,
    Mask,
    NoiseSpec,
    Normal,
    Uniform,
)
from tests.statistics import assert_mean_is, assert_variance_is

LAWS = (
    Mask(0.8, 1 / 0.8),
    Mask(0.3),
    Normal(2.0, 0.5),
    Uniform(-1.0, 3.0),
    Exponential(4.0),
    Integers(2, 7),
)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_moments_are_those_of_samples(law):
    """E86."""
    spec = NoiseSpec("site", law, (4,), torch.float64, torch.device("cpu"))
    draws = spec.sample(3, range(20_000))
    mean, variance = law_moments(law)
    assert_mean_is(draws, mean)
    assert_variance_is(draws, variance)


def test_unknown_law():
    with pytest.raises(NotSupportedError, match="noise of the law"):
        law_moments(object())
