"""Mixtures of Student-t against scipy, component by component."""

import doctest

import pytest
import scipy.stats
import torch
from torch.testing import assert_close

from caveat.errors import CaveatWarning, ShapeError
from caveat.predictive import StudentMixturePredictive, student_mixture

LOCATION = torch.tensor([0.5, -1.0, 2.0]).double()
SCALE = torch.tensor([1.0, 0.5, 3.0]).double()


def mixture(n_draws: int = 0, df: float = 5.0) -> StudentMixturePredictive:
    """Three components; the last has no weight in the first row."""
    steps = torch.tensor([[-1.0], [0.3], [2.0]]).double()
    weights = torch.tensor([[0.6, 0.2, 0.3], [0.4, 0.5, 0.3], [0.0, 0.3, 0.4]]).double()
    return StudentMixturePredictive.of(
        LOCATION + steps,
        SCALE * (1 + 0.1 * steps.abs()),
        weights.log(),
        noise_scale=0.4,
        df=df,
        n_draws=n_draws,
    )


def laws(predictive):
    return scipy.stats.t(
        predictive.df.numpy(), predictive.locations.numpy(), predictive.scales.numpy()
    )


def test_mixture_restated():
    predictive = mixture()
    law, weights = laws(predictive), predictive.log_weights.exp().numpy()
    y = torch.tensor([0.1, 4.0, -7.0]).double()
    density = (weights * law.pdf(y.numpy())).sum(0)
    assert_close(predictive.log_prob(y).exp(), torch.from_numpy(density))
    cdf = (weights * law.cdf(y.numpy())).sum(0)
    assert_close(predictive.cdf(y), torch.from_numpy(cdf))
    mean = (weights * law.mean()).sum(0)
    assert_close(predictive.mean, torch.from_numpy(mean))
    variance = (weights * (law.var() + (law.mean() - mean) ** 2)).sum(0)
    assert_close(predictive.variance, torch.from_numpy(variance))


def test_mixture_quantiles_are_roots_of_the_cdf():
    predictive = mixture()
    for level in (0.001, 0.3, 0.975):
        found = predictive.cdf(predictive.quantile(level))
        assert_close(
            found, torch.full((3,), level, dtype=torch.float64), rtol=1e-10, atol=0
        )


def test_mean_error_of_drawn_masks():
    assert not mixture().mean_error.any()
    assert bool(mixture(n_draws=1).mean_error.isinf().all())
    drawn = StudentMixturePredictive.of(
        torch.tensor([[1.0], [2.0], [6.0]]),
        torch.ones(3, 1),
        torch.full((3, 1), 1 / 3).log(),
        noise_scale=1.0,
        df=9.0,
        n_draws=3,
    )
    expected = torch.tensor([1.0, 2.0, 6.0]).std() / 3**0.5
    assert_close(drawn.mean_error, expected.reshape(1))


def test_few_degrees_of_freedom():
    with pytest.warns(CaveatWarning, match="has no variance"):
        assert bool(mixture(df=2.0).variance.isinf().all())
    with pytest.warns(CaveatWarning, match="has no variance"):
        assert bool(mixture(df=1.0).std.isnan().all())
    assert bool(mixture(df=2.0).mean.isfinite().all())
    assert bool(mixture(df=1.0).mean.isnan().all())
    lower, upper = mixture(df=1.0).interval()
    assert bool((lower < upper).all())


def test_repr():
    assert "StudentMixturePredictive: 3 rows, all masks" in repr(mixture())
    assert "3 rows, 50 masks" in repr(mixture(n_draws=50))


def test_wrong_input():
    with pytest.raises(ShapeError, match="locations and log_weights"):
        StudentMixturePredictive.of(
            LOCATION[None], SCALE[None], SCALE, noise_scale=1.0, df=3.0
        )


def test_examples():
    result = doctest.testmod(student_mixture)
    assert result.attempted > 0
    assert result.failed == 0
