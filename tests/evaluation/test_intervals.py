"""Coverage is what counting by the predictive's own intervals gives."""

import numpy as np
import pytest
import scipy.stats
import torch

from caveat.errors import CaveatWarning, ParameterError
from caveat.evaluation import CoverageCurve, coverage, probability_transform
from caveat.predictive import (
    GaussianAccumulator,
    GaussianPredictive,
    StudentPredictive,
)


def test_transform_of_a_mixture_restated(regression, outcomes):
    found = probability_transform(regression, outcomes).squeeze(1)
    draws = regression.draws.squeeze(2).numpy()
    expected = scipy.stats.norm.cdf((outcomes.numpy() - draws) / 0.5).mean(0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_transform_with_a_precision_for_each_draw(generator):
    draws = torch.randn(5, 4, 2, generator=generator, dtype=torch.float64)
    tau = torch.rand(5, 4, 2, generator=generator, dtype=torch.float64) + 0.5
    y = torch.randn(4, 2, generator=generator, dtype=torch.float64)
    predictive = GaussianPredictive.from_draws(draws, precision=tau)
    found = probability_transform(predictive, y)
    expected = scipy.stats.norm.cdf((y - draws) * tau.sqrt()).mean(0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_transform_of_a_student():
    predictive = StudentPredictive.of(
        torch.zeros(2), torch.ones(2), noise_scale=1.0, df=3.0
    )
    found = probability_transform(predictive, [0.0, 1.0])
    np.testing.assert_allclose(found, scipy.stats.t.cdf([0.0, 1.0], 3), rtol=1e-6)


def test_transform_is_uniform_if_the_predictive_is_right(regression, outcomes):
    below = probability_transform(regression, outcomes).reshape(-1)
    assert scipy.stats.kstest(below, "uniform").pvalue > 1e-3


def test_coverage_counts_the_intervals(regression, outcomes):
    for level in (0.1, 0.5, 0.9):
        lower, upper = regression.interval(level)
        y = outcomes[:, None]
        inside = ((lower <= y) & (y <= upper)).double()
        found = coverage(regression, outcomes, level=level)
        assert found.value == pytest.approx(float(inside.mean()), abs=1 / 300 + 1e-9)
        assert abs(found.value - level) < 5 * np.sqrt(level * (1 - level) / 300)


def test_curve_is_coverage_at_each_level(regression, outcomes):
    curve = CoverageCurve.from_predictive(regression, outcomes, levels=[0.2, 0.7])
    expected = [coverage(regression, outcomes, level=v).value for v in (0.2, 0.7)]
    np.testing.assert_allclose(curve.observed, expected)
    np.testing.assert_allclose(curve.error, np.sqrt(np.array([0.16, 0.21]) / 300))


def test_outputs_are_averaged():
    predictive = GaussianPredictive.from_draws(torch.zeros(1, 3, 2), precision=1.0)
    y = torch.tensor([[0.0, 9.0]] * 3)
    found = coverage(predictive, y)
    assert (found.value, found.error) == (0.5, 0.0)


def test_bad_levels(regression, outcomes):
    with pytest.raises(ParameterError, match="level"):
        coverage(regression, outcomes, level=1.2)
    with pytest.raises(ParameterError, match="strictly between"):
        CoverageCurve.from_predictive(regression, outcomes, levels=[0.5, 1.0])


def test_without_draws_it_is_that_of_a_gaussian_and_said():
    gathered = GaussianAccumulator(1.0, keep_draws=False)
    gathered.add(torch.zeros(2, 3))
    with pytest.warns(CaveatWarning, match="draws were not kept"):
        assert coverage(gathered.result(), [0.0] * 3).value == 1.0
