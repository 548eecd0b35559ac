"""Moments of the noise against draws, and what a user may write."""

import numpy as np
import pytest
import torch

from caveat.errors import ParameterError, ShapeError
from caveat.maxent.linear import make_noise
from tests.maxent.linear.reference import second_moment
from tests.statistics import assert_mean_is, assert_variance_is

RATES = np.array([0.0, 0.3, 0.3, 0.7])


@pytest.mark.parametrize("kind", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("groups", [None, [5, 2, 2, 9]])
def test_draws_have_the_stated_moments(kind, groups):
    noise = make_noise(RATES, 4, kind=kind, groups=groups)
    draws = torch.from_numpy(noise.draw(40_000, np.random.default_rng(0)))
    assert_mean_is(draws, torch.from_numpy(noise.mean))
    assert_variance_is(draws, torch.from_numpy(noise.variance))
    products = (draws[:, :, None] * draws[:, None, :]).flatten(1)
    assert_mean_is(products, torch.from_numpy(second_moment(noise)).flatten())


def test_a_group_shares_its_noise():
    noise = make_noise(0.5, 4, groups=["a", "b", "a", "b"])
    draws = noise.draw(50, np.random.default_rng(1))
    assert np.array_equal(draws[:, 0], draws[:, 2])
    assert not np.array_equal(draws[:, 0], draws[:, 1])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"drop_rate": 1.0},
            ParameterError,
            r"\[0, 1\). Got 1.0: a unit that is always",
        ),
        ({"drop_rate": [0.1, -0.1, 0.2]}, ParameterError, "Got -0.1"),
        ({"drop_rate": np.nan}, ParameterError, "Got nan"),
        ({"drop_rate": [0.1, 0.2]}, ShapeError, r"\(3,\). Got the shape \(2,\)"),
        ({"drop_rate": 0.1, "kind": "poisson"}, ParameterError, "'bernoulli', 'gauss"),
        ({"drop_rate": 0.1, "groups": [1, 2]}, ShapeError, "one label per feature"),
        (
            {"drop_rate": [0.1, 0.2, 0.2], "groups": [0, 0, 1]},
            ParameterError,
            "same drop_rate",
        ),
    ],
)
def test_wrong_noise(arguments, error, message):
    with pytest.raises(error, match=message):
        make_noise(n_features=3, **arguments)
