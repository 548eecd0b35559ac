"""Policies accept and defer by their threshold, and say why."""

import math

import numpy as np
import pytest
import torch

from caveat.decisions import Costs, Coverage, ErrorRate, defer
from caveat.errors import CaveatWarning, InputTypeError, ParameterError, ShapeError
from caveat.evaluation import off_by_more_than
from caveat.predictive import CategoricalPredictive, GaussianPredictive


@pytest.fixture
def classifier() -> CategoricalPredictive:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(5, 600, 3, generator=generator, dtype=torch.float64)
    return CategoricalPredictive.from_logits(logits)


@pytest.fixture
def labels(classifier: CategoricalPredictive) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.multinomial(classifier.probs, 1, generator=generator).squeeze(1)


@pytest.fixture
def regression() -> GaussianPredictive:
    generator = torch.Generator().manual_seed(0)
    width = torch.linspace(0.1, 2.0, 500, dtype=torch.float64)
    draws = width * torch.randn(50, 500, generator=generator, dtype=torch.float64)
    return GaussianPredictive.from_draws(draws, precision=100.0)


@pytest.mark.parametrize(
    "score",
    [
        None,
        "entropy",
        "mutual_information",
        "variation_ratio",
        lambda p: 1 - p.probs.amax(-1),
    ],
)
def test_any_score(classifier, labels, score):
    policy = defer(classifier, labels, target=Coverage(0.5), score=score)
    decision = policy.apply(classifier)
    assert policy.met and decision.accepted.mean() >= 0.5
    wrong = (classifier.label != labels).numpy()
    assert wrong[decision.accepted].mean() == pytest.approx(policy.risk)
    assert policy.risk < wrong.mean()
    assert policy.coverage == decision.accepted.mean()


def test_accepted_deferred_and_reasons(classifier, labels):
    policy = defer(classifier, labels, target=Coverage(0.7))
    decision = policy.apply(classifier[:50])
    assert (decision.accepted ^ decision.deferred).all() and len(decision) == 50
    np.testing.assert_array_equal(
        decision.accepted, decision.scores <= policy.threshold
    )
    for accepted, score, reason in zip(
        decision.accepted, decision.scores, decision.reasons, strict=True
    ):
        verb, relation = (
            ("accepted", "is at most") if accepted else ("deferred", "is above")
        )
        expected = (
            f"{verb}: least confidence {score:.4g} {relation} {policy.threshold:.4g}"
        )
        assert reason == expected
    assert f"50 rows, {decision.accepted.sum()} accepted" in repr(decision)


def test_a_regression_with_a_tolerance(regression):
    generator = torch.Generator().manual_seed(3)
    width = torch.linspace(0.1, 2.0, 500, dtype=torch.float64)
    y = width * torch.randn(500, generator=generator, dtype=torch.float64)
    target = ErrorRate(0.1, confidence=0.9)
    policy = defer(regression, y, target=target, loss=off_by_more_than(1.0))
    assert policy.met and 0 < policy.coverage < 1 and policy.risk < 0.1
    everybody = defer(
        regression, y, target=target, loss=off_by_more_than(100.0), score="std"
    )
    assert everybody.coverage == 1.0


def test_a_regression_needs_to_say_what_an_error_is(regression):
    with pytest.raises(ParameterError, match="off_by_more_than"):
        defer(regression, torch.ones(500), target=ErrorRate(0.1))
    policy = defer(regression, torch.ones(500), target=Costs(wrong=1.0, review=0.5))
    assert "No guarantee" in policy.promise


def test_errors_may_be_given(classifier, labels):
    errors = (classifier.label != labels).double()
    one = defer(classifier, labels, target=Costs(wrong=3.0, review=1.0))
    two = defer(classifier, labels, target=one.target, loss=errors)
    assert one.threshold == two.threshold


def test_what_cannot_be_met_is_said(classifier, labels):
    with pytest.warns(CaveatWarning, match="Not met: 4603 accepted rows"):
        policy = defer(classifier, labels, target=ErrorRate(0.001, confidence=0.9))
    assert not policy.met and policy.coverage == 0.0 and math.isnan(policy.risk)
    decision = policy.apply(classifier)
    assert decision.deferred.all()
    assert "cannot be met" in decision.reasons[0]
    assert policy.plot().ax_.lines[-1].get_label() != "policy"


def test_infinite_scores_are_deferred(classifier, labels):
    policy = defer(classifier, labels, target=Coverage(1.0))
    assert policy.threshold == math.inf
    decision = policy.decide([0.5, np.inf])
    assert decision.accepted.tolist() == [True, False]
    assert "never accepted" in decision.reasons[1]


def test_curve_and_area(classifier, labels):
    policy = defer(classifier, labels, target=Coverage(0.6), score="entropy")
    assert policy.aurc == policy.curve.aurc
    place = np.searchsorted(policy.curve.thresholds, policy.threshold)
    assert policy.curve.risk[place] == pytest.approx(policy.risk)
    display = policy.plot()
    mark = display.ax_.lines[-1]
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (policy.coverage, policy.risk)


def test_repr_tells_the_promise(classifier, labels):
    policy = defer(classifier, labels, target=Coverage(0.6))
    assert policy.promise in repr(policy) and "least confidence" in repr(policy)


def test_bad_input(classifier, labels):
    with pytest.raises(InputTypeError, match=r"ErrorRate\(0.02\)"):
        defer(classifier, labels, target=0.1)
    with pytest.raises(ShapeError, match="600"):
        defer(classifier, labels[:5], target=Coverage(0.5))
    with pytest.raises(ParameterError, match="at least one row"):
        defer(classifier[:0], labels[:0], target=Coverage(0.5))
    with pytest.raises(ParameterError, match="NaN"):
        defer(
            classifier,
            labels,
            target=Coverage(0.5),
            score=lambda p: torch.full((600,), torch.nan),
        )
    policy = defer(classifier, labels, target=Coverage(0.5))
    with pytest.raises(ParameterError, match="NaN"):
        policy.decide([np.nan])
    with pytest.raises(ParameterError, match="score must be"):
        policy.apply(GaussianPredictive.from_draws(torch.zeros(1, 2), precision=1.0))
