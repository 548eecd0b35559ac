"""Figures are asked of what they show."""

import sys

import numpy as np
import pytest
import torch

import caveat
from caveat import evaluation
from caveat.errors import MissingExtraError
from tests.test_summary import LABELS, classification, regression


def test_a_regression_draws_itself() -> None:
    drawn = regression().plot()
    assert isinstance(drawn, evaluation.PredictiveDisplay)
    np.testing.assert_array_equal(drawn.x, [0, 1])
    np.testing.assert_allclose(drawn.mean, [1, 1])
    again = regression().plot([5.0, 3.0], ax=drawn.ax_, scale=2.0)
    assert again.ax_ is drawn.ax_
    np.testing.assert_array_equal(again.x, [3, 5])
    np.testing.assert_allclose(again.mean, [2, 2])


def test_a_classification_draws_itself() -> None:
    drawn = classification(6).plot()
    assert isinstance(drawn, evaluation.SoftmaxScatterDisplay)
    assert len(drawn.ax_.collections) == 2  # one cloud a class
    many = caveat.CategoricalPredictive.from_logits(torch.randn(3, 4, 9))
    assert len(many.plot().ax_.collections) == 5


def test_curves_draw_themselves() -> None:
    held_out = classification()
    reliability = evaluation.ReliabilityCurve.from_predictive(held_out, LABELS)
    coverage = evaluation.CoverageCurve.from_predictive(regression(), [0.0, 1.0])
    risk = evaluation.RiskCoverage.from_scores([0.1, 0.2, 0.3], [0, 1, 0])
    for curve, kind in (
        (reliability, evaluation.ReliabilityDisplay),
        (coverage, evaluation.CoverageDisplay),
        (risk, evaluation.RiskCoverageDisplay),
    ):
        drawn = curve.plot()
        assert isinstance(drawn, kind) and drawn.curve is curve
        assert drawn.ax_.lines


def test_without_matplotlib_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    curve = evaluation.RiskCoverage.from_scores([0.1], [0])
    for thing in (regression(), classification(3), curve):
        with pytest.raises(MissingExtraError, match=r"caveat\[plot\]"):
            thing.plot()
