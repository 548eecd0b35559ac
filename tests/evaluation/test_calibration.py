"""Calibration finds what is known to be best, and is no worse on the rows it saw."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from caveat.errors import (
    CaveatWarning,
    DrawsNotKeptError,
    NoAnswerError,
    ParameterError,
    ShapeError,
)
from caveat.evaluation import (
    PrecisionCalibration,
    TemperatureCalibration,
    calibrate,
    log_likelihood,
)
from caveat.predictive import (
    CategoricalAccumulator,
    CategoricalPredictive,
    GaussianPredictive,
    MomentPredictive,
    StudentPredictive,
)


def test_precision_of_one_gaussian_is_one_over_the_mean_square(generator):
    y = 3 * torch.randn(500, generator=generator, dtype=torch.float64)
    predictive = GaussianPredictive.from_draws(
        torch.zeros(1, 500).double(), precision=1
    )
    found = calibrate(predictive, y)
    assert found.factor == pytest.approx(1 / float(y.square().mean()), rel=1e-4)
    assert found.n_rows == 500
    assert found.after == pytest.approx(
        log_likelihood(found.apply(predictive), y).value
    )
    assert found.before == pytest.approx(log_likelihood(predictive, y).value)


def test_precision_of_a_mixture_is_the_best_on_a_fine_grid(regression, outcomes):
    wrong = regression.with_precision(0.3)
    found = PrecisionCalibration.fit(wrong, outcomes)
    grid = found.factor * np.exp([-0.2, -0.01, 0.01, 0.2])
    others = [
        log_likelihood(wrong.with_precision(0.3 * k), outcomes).value for k in grid
    ]
    assert max(others) < found.after
    assert 0.3 * found.factor == pytest.approx(4.0, rel=0.35)  # the truth


def test_where_one_starts_does_not_matter(regression, outcomes):
    ends = [
        calibrate(regression.with_precision(tau), outcomes)
        .apply(regression.with_precision(tau))
        .precision[0, 0]
        for tau in (0.01, 4.0, 1000.0)
    ]
    assert ends == pytest.approx([float(ends[0])] * 3, rel=1e-3)


def test_mean_and_disagreement_are_left_alone(regression, outcomes):
    after = calibrate(regression, outcomes).apply(regression)
    assert torch.equal(after.mean, regression.mean)
    assert torch.equal(after.epistemic_variance, regression.epistemic_variance)


def test_learned_precisions_keep_their_proportions(generator):
    draws = torch.randn(6, 50, 1, generator=generator, dtype=torch.float64)
    tau = torch.rand(6, 50, 1, generator=generator, dtype=torch.float64) + 0.5
    predictive = GaussianPredictive.from_draws(draws, precision=tau)
    y = 5 * torch.randn(50, generator=generator, dtype=torch.float64)
    found = calibrate(predictive, y)
    after = found.apply(predictive)
    np.testing.assert_allclose(after.draw_precision, found.factor * tau)
    assert found.after > found.before


def test_one_precision_per_output_keeps_its_proportions(generator):
    draws = torch.randn(3, 40, 2, generator=generator)
    predictive = GaussianPredictive.from_draws(
        draws, precision=torch.tensor([1.0, 4.0])
    )
    found = calibrate(predictive, torch.randn(40, 2, generator=generator))
    after = found.apply(predictive).precision
    np.testing.assert_allclose(after[:, 1] / after[:, 0], 4.0, rtol=1e-5)


def test_a_precision_without_end_is_said(regression):
    perfect = GaussianPredictive.from_draws(torch.ones(1, 3), precision=1.0)
    with pytest.warns(CaveatWarning, match="end of its range"):
        calibrate(perfect, [1.0, 1.0, 1.0])


def test_temperature_of_one_draw_is_that_of_an_optimiser(generator):
    logits = 4 * torch.randn(1, 300, 3, generator=generator, dtype=torch.float64)
    y = torch.multinomial((logits[0] / 2).softmax(-1), 1, generator=generator)[:, 0]

    def loss(temperature: float) -> float:
        return float(torch.nn.functional.cross_entropy(logits[0] / temperature, y))

    expected = minimize_scalar(loss, bounds=(0.2, 9), method="bounded").x
    found = TemperatureCalibration.fit(CategoricalPredictive.from_logits(logits), y)
    assert found.temperature == pytest.approx(expected, rel=1e-3)
    assert found.temperature == pytest.approx(2.0, rel=0.2)
    assert found.after == pytest.approx(-loss(expected), rel=1e-6)


def test_temperature_divides_the_logits_of_each_draw(classifier, labels):
    found = calibrate(classifier, labels)
    assert found.per_draw
    after = found.apply(classifier)
    expected = (classifier.draws / found.temperature).softmax(-1).mean(0)
    np.testing.assert_allclose(after.probs, expected, rtol=1e-12)
    assert after.n_draws == 9
    assert found.after == pytest.approx(log_likelihood(after, labels).value)
    assert found.after >= found.before


def not_kept(logits: torch.Tensor) -> CategoricalPredictive:
    gathered = CategoricalAccumulator(seed=0, keep_draws=False)
    gathered.add(logits)
    return gathered.result()


def test_temperature_without_draws_divides_the_average(classifier, labels):
    summary = not_kept(classifier.draws)
    found = calibrate(summary, labels)
    assert not found.per_draw
    after = found.apply(summary)
    expected = (classifier.log_probs / found.temperature).softmax(-1)
    np.testing.assert_allclose(after.probs, expected, rtol=1e-9)
    assert after.n_draws == 1
    same = found.apply(classifier)  # the average of draws that were kept
    np.testing.assert_allclose(same.probs, expected, rtol=1e-9)


def test_a_point_stays_a_point(generator):
    """One pass: its logits divided, as they would be for a network without noise."""
    logits = 4 * torch.randn(300, 3, generator=generator, dtype=torch.float64)
    y = torch.multinomial((logits / 2).softmax(-1), 1, generator=generator)[:, 0]
    point = CategoricalPredictive.point(logits)
    found = calibrate(point, y)
    after = found.apply(point)
    assert after.n_draws == 0 and not after.mean_error.any()
    expected = (logits / found.temperature).softmax(-1)
    np.testing.assert_allclose(after.probs, expected, rtol=1e-12)
    assert found.temperature == pytest.approx(2.0, rel=0.2)
    assert found.after == pytest.approx(log_likelihood(after, y).value)


def test_moments_are_calibrated_like_draws(generator):
    """The factor of known Gaussians: epistemic 1, noise 4 where 0.25 is said."""
    mean = torch.zeros(4000, 1).double()
    moments = MomentPredictive.of(
        mean, torch.ones_like(mean), method="exact", precision=4.0
    )
    y = math.sqrt(5.0) * torch.randn(4000, 1, generator=generator).double()
    found = calibrate(moments, y)
    exact = 1.0 / (float(y.square().mean()) - 1.0) / 4.0
    assert found.factor == pytest.approx(exact, rel=1e-3)
    after = found.apply(moments)
    assert isinstance(after, MomentPredictive)
    assert float(after.variance[0]) == pytest.approx(float(y.square().mean()), rel=1e-3)


def test_a_temperature_of_draws_needs_draws(classifier, labels):
    found = calibrate(classifier, labels)
    with pytest.raises(DrawsNotKeptError, match="keep_draws=True"):
        found.apply(not_kept(classifier.draws))


def test_masked_classes_stay_masked():
    logits = torch.zeros(2, 4, 3, dtype=torch.float64)
    logits[..., 2] = -math.inf
    logits[..., 0] = 2.0
    found = calibrate(CategoricalPredictive.from_logits(logits), [0, 0, 0, 1])
    assert found.temperature == pytest.approx(2 / math.log(3), rel=1e-3)


def test_apply_leaves_its_argument_alone(classifier, labels):
    before = classifier.draws.clone()
    calibrate(classifier, labels).apply(classifier)
    assert torch.equal(classifier.draws, before)


def test_what_cannot_be_calibrated(classifier, regression):
    student = StudentPredictive.of(
        torch.zeros(2), torch.ones(2), noise_scale=1.0, df=3.0
    )
    with pytest.raises(NoAnswerError, match="StudentPredictive"):
        calibrate(student, [0.0, 0.0])
    with pytest.raises(ParameterError, match="at least one row"):
        calibrate(regression[:0], [])
    with pytest.raises(ShapeError, match="400"):
        calibrate(classifier, [0, 1])
