"""The density of held-out targets, against closed forms and brute force."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from caveat.errors import ParameterError
from caveat.predictive import GaussianPredictive
from caveat.training.likelihood import MixtureScore, Residuals, best_scale, residuals
from tests.predictive.enumeration import regression_draws

RANGE = {"low": 1e-4, "high": 1e4}


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(1)


def some_draws(rng, *, draws=30, rows=20, targets=2):
    means = torch.randn(draws, rows, targets, generator=rng, dtype=torch.float64)
    y = torch.randn(rows, targets, generator=rng, dtype=torch.float64)
    precisions = torch.rand(means.shape, generator=rng, dtype=torch.float64) + 0.5
    return means, precisions, y


def plain_density(means, precisions, y, scale):
    """Log density of each row, restated with scipy."""
    sd = 1 / np.sqrt(scale * precisions.numpy())
    parts = norm.pdf(y.numpy(), means.numpy(), sd).prod(-1)  # shape: (draws, rows)
    return np.log(parts.mean(0))


@pytest.mark.parametrize("scale", [0.1, 1.0, 7.0])
def test_density_is_that_of_the_mixture_of_gaussians(rng, scale):
    means, precisions, y = some_draws(rng)
    found = residuals(means, precisions, y).log_density(scale)
    np.testing.assert_allclose(found, plain_density(means, precisions, y, scale))


@pytest.mark.parametrize("scale", [0.1, 1.0, 7.0])
def test_density_is_that_of_the_predictive(rng, scale):
    means, _, y = some_draws(rng)
    found = residuals(means, None, y).log_density(scale)
    expected = GaussianPredictive.from_draws(means, precision=scale).log_prob(y)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("targets", [1, 3])
def test_best_precision_of_one_draw_is_one_over_the_squared_error(rng, targets):
    means, _, y = some_draws(rng, draws=1, targets=targets)
    found = best_scale([residuals(means, None, y)], **RANGE)
    tau = 1 / float((means[0] - y).square().mean())
    assert found.scale == pytest.approx(tau, rel=2e-3)
    density = 0.5 * targets * (math.log(tau / (2 * math.pi)) - 1)
    assert found.log_likelihood == pytest.approx(density, abs=1e-5)


def test_best_factor_of_one_draw_with_learned_precisions(rng):
    means, precisions, y = some_draws(rng, draws=1)
    found = best_scale([residuals(means, precisions, y)], **RANGE)
    factor = 1 / float((precisions[0] * (means[0] - y).square()).mean())
    assert found.scale == pytest.approx(factor, rel=2e-3)


@pytest.mark.parametrize("learned", [False, True])
def test_best_scale_is_that_of_a_fine_grid_over_all_folds(rng, learned):
    parts = [some_draws(rng, rows=rows) for rows in (5, 40)]
    folds = [residuals(f, tau if learned else None, y) for f, tau, y in parts]
    found = best_scale(folds, **RANGE)
    grid = np.geomspace(1e-4, 1e4, 801)
    values = [torch.cat([r.log_density(k) for r in folds]).mean() for k in grid]
    best = int(np.argmax(values))
    assert found.scale == pytest.approx(grid[best], rel=3e-2)
    assert found.log_likelihood >= float(values[best]) - 1e-6


def test_best_scale_stays_within_its_bounds(rng):
    means, _, y = some_draws(rng, draws=1)
    high = best_scale([residuals(y[None], None, y)], **RANGE)
    assert high.scale == pytest.approx(1e4, rel=1e-2)
    low = best_scale([residuals(1e6 * means, None, y)], **RANGE)
    assert low.scale == pytest.approx(1e-4, rel=1e-2)


@settings(max_examples=20)
@given(size=st.floats(-3, 3))
def test_scale_and_density_follow_the_units_of_y(size):
    """E18 and E19: tau / s², and log p - D log s."""
    means, _, y = some_draws(torch.Generator().manual_seed(2))
    s = 10.0**size
    plain = best_scale([residuals(means, None, y)], low=1e-3, high=1e3)
    scaled = best_scale(
        [residuals(s * means, None, s * y)], low=1e-3 / s**2, high=1e3 / s**2
    )
    assert scaled.scale == pytest.approx(plain.scale / s**2, rel=3e-3)
    shifted = plain.log_likelihood - 2 * math.log(s)
    assert scaled.log_likelihood == pytest.approx(shifted, abs=1e-5)


def test_thinned_residuals_are_those_of_fewer_draws(rng):
    means, precisions, y = some_draws(rng)
    found = residuals(means, precisions, y).thinned(4)
    few = residuals(means[::4], precisions[::4], y)
    torch.testing.assert_close(found.log_density(2.0), few.log_density(2.0))


def test_a_diverged_network_is_the_worst_of_all():
    broken = Residuals(torch.full((3, 2), torch.nan), None, 1)
    scale, value, _ = best_scale([broken], **RANGE)
    assert math.isnan(scale) and value == -math.inf


@pytest.mark.parametrize("found", [[], [Residuals(torch.empty(3, 0), None, 1)]])
def test_no_rows_are_refused(found):
    with pytest.raises(ParameterError, match="at least one row"):
        best_scale(found, **RANGE)


@pytest.mark.parametrize("size", [1, 7, 30])
def test_score_of_blocks_is_that_of_the_predictive(rng, size):
    means, _, y = some_draws(rng)
    score = MixtureScore(y, 2.5)
    for block in means.split(size):
        score.add(block)
    predictive = GaussianPredictive.from_draws(means, precision=2.5)
    expected = float(predictive.log_prob(y).mean())
    assert score.log_likelihood == pytest.approx(expected, rel=1e-12)
    gap = predictive.mean - y
    assert score.rmse == pytest.approx(float(gap.square().mean().sqrt()), rel=1e-12)


def test_score_with_learned_precisions(rng):
    means, precisions, y = some_draws(rng)
    score = MixtureScore(y, 3.0)
    for block in zip(means.split(7), precisions.split(7), strict=True):
        score.add(*block)
    expected = plain_density(means, precisions, y, 3.0).mean()
    assert score.log_likelihood == pytest.approx(expected, rel=1e-10)


EXACT = {
    "unscaled": (torch.relu, 9, False, 0.66, -1.153474507284721),
    "inverted": (torch.relu, 9, True, 1.11, -1.6081527867684775),
    "tanh": (torch.tanh, None, False, 0.17851476973269, -0.78764774377091),
}


@pytest.mark.parametrize("case", EXACT)
def test_exact_density_of_the_three_unit_net(case):
    activation, odds, inverted, mean, density = EXACT[case]
    draws = regression_draws(activation, input_odds=odds, inverted=inverted)
    score = MixtureScore(torch.tensor([[0.5]]), 4.0)
    for block in draws.split(11):
        score.add(block)
    assert score.log_likelihood == pytest.approx(density, abs=1e-12)
    assert score.rmse == pytest.approx(abs(mean - 0.5), abs=1e-12)
