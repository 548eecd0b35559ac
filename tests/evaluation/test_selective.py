"""Risk-coverage curves by hand, with ties, and against naive restatements."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caveat.errors import ParameterError, ShapeError
from caveat.evaluation import RiskCoverage, aurc, misclassified, score_of
from caveat.evaluation.selective import _mean_risk

ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from([0.0, 0.5, 1.0])),
    min_size=1,
    max_size=30,
)


def curve_of(rows: list[tuple[int, float]]) -> RiskCoverage:
    scores, losses = zip(*rows, strict=True)
    return RiskCoverage.from_scores(np.array(scores, float), losses)


def test_by_hand():
    curve = RiskCoverage.from_scores([0.4, 0.1, 0.3, 0.2], [1, 0, 1, 0])
    np.testing.assert_allclose(curve.thresholds, [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(curve.risk, [0, 0, 1 / 3, 1 / 2])
    np.testing.assert_allclose(curve.retained_error, [0, 0, 1 / 4, 1 / 2])
    assert curve.aurc.value == pytest.approx((1 / 3 + 1 / 2) / 4)
    assert curve.excess_aurc.value == pytest.approx(0)  # the order is the best
    assert curve.retention_area.value == pytest.approx((1 / 4 + 1 / 2) / 4)


def test_the_worst_order():
    curve = RiskCoverage.from_scores([0.1, 0.2, 0.3, 0.4], [1, 1, 0, 0])
    assert curve.aurc.value == pytest.approx((1 + 1 + 2 / 3 + 1 / 2) / 4)
    assert curve.excess_aurc.value == pytest.approx(19 / 24 - 5 / 24)


@settings(deadline=None, max_examples=50)
@given(ROWS)
def test_every_point_restated(rows):
    curve = curve_of(rows)
    for threshold, count, risk in zip(
        curve.thresholds, curve.counts, curve.risk, strict=True
    ):
        losses = [loss for score, loss in rows if score <= threshold]
        assert len(losses) == count
        assert risk == pytest.approx(np.mean(losses))
    assert curve.coverage[-1] == 1.0


@settings(deadline=None, max_examples=50)
@given(ROWS, st.randoms())
def test_order_of_rows_does_not_matter(rows, random):
    mixed = list(rows)
    random.shuffle(mixed)
    first, second = curve_of(rows), curve_of(mixed)
    np.testing.assert_allclose(first.risk, second.risk)
    areas = [_mean_risk(curve.scores, curve.losses) for curve in (first, second)]
    assert areas[0] == pytest.approx(areas[1])


def test_ties_are_the_mean_over_their_orders():
    scores, losses = [1.0, 1.0, 1.0, 2.0], [1, 0, 0, 1]
    found = RiskCoverage.from_scores(scores, losses).aurc.value
    orders = [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]]
    each = [np.mean(np.cumsum(o) / [1, 2, 3, 4]) for o in orders]
    assert found == pytest.approx(np.mean(each))


@settings(deadline=None, max_examples=50)
@given(ROWS)
def test_no_order_beats_the_losses(rows):
    curve = curve_of(rows)
    best = _mean_risk(curve.losses, curve.losses)
    assert _mean_risk(curve.scores, curve.losses) > best - 1e-12


def test_a_useless_score_has_the_mean_risk():
    """E AURC = mean loss for any exchangeable order; constant scores give it."""
    losses = np.array([1.0, 0, 0, 0, 1.0])
    curve = RiskCoverage.from_scores(np.zeros(5), losses)
    assert curve.aurc.value == pytest.approx(losses.mean())


def test_errors_of_risk():
    generator = np.random.default_rng(0)
    losses = generator.random(50)
    curve = RiskCoverage.from_scores(np.arange(50.0), losses)
    expected = losses[:20].std(ddof=1) / np.sqrt(20)
    assert curve.risk_error[19] == pytest.approx(expected)
    assert curve.risk_error[0] == np.inf


def test_error_of_the_area_is_its_spread():
    generator = np.random.default_rng(3)
    found = []
    for _ in range(150):
        scores = generator.random(200)
        errors = generator.random(200) < scores / 2
        found.append(RiskCoverage.from_scores(scores, errors))
    values = np.array([_mean_risk(curve.scores, curve.losses) for curve in found])
    mean_error = np.mean([curve.aurc.error for curve in found[:5]])
    assert values.std() == pytest.approx(mean_error, rel=0.25)
    # R(c) = c / 4, so that its mean over c is 1 / 8
    assert abs(values.mean() - 1 / 8) < 5 * values.std() / np.sqrt(150) + 1e-3


def test_from_predictive(classifier, labels):
    curve = RiskCoverage.from_predictive(classifier, labels, score="entropy")
    expected = RiskCoverage.from_scores(
        score_of(classifier, "entropy"), misclassified(classifier, labels)
    )
    np.testing.assert_array_equal(curve.risk, expected.risk)
    assert aurc(classifier, labels, score="entropy") == curve.aurc


def test_regression_by_default(regression, outcomes):
    curve = RiskCoverage.from_predictive(regression, outcomes)
    np.testing.assert_array_equal(curve.scores, regression.std[:, 0])


def test_bad_input():
    with pytest.raises(ParameterError, match="scores must not be NaN"):
        RiskCoverage.from_scores([np.nan], [0])
    with pytest.raises(ShapeError, match=r"\(2,\)"):
        RiskCoverage.from_scores([0.1, 0.2], [0])
    with pytest.raises(ParameterError, match="at least one row"):
        RiskCoverage.from_scores([], [])
    with pytest.raises(ShapeError, match="one number per row"):
        RiskCoverage.from_scores(0.5, [0])
