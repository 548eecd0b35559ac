"""Sums that are carried give what predictives of the same draws give."""

import pytest
import torch

from caveat.errors import ParameterError
from caveat.exporting.summaries import (
    CLASSES,
    DRAWS,
    REGRESSION,
    ClassSummary,
    RegressionSummary,
    is_of_classes,
    pooled,
)
from caveat.predictive import CategoricalPredictive, GaussianPredictive

DRAWN = torch.randn(13, 4, 3, generator=torch.Generator().manual_seed(0))


def in_blocks(summary, draws):
    """What is told after draws that came in blocks of several sizes."""
    state = summary.empty(draws.shape[1:], draws.dtype)
    for block in draws.split([1, 5, 7]):
        state = summary.merged(state, summary.of_block(block))
    return dict(zip(summary.wanted, summary.told(state), strict=True))


@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_a_regression_is_that_of_a_gaussian_predictive(shift):
    tau = torch.tensor([1.0, 4.0, 9.0])
    summary = RegressionSummary((*REGRESSION, DRAWS), torch.float32, tau, 0.8)
    draws = DRAWN + shift
    found = in_blocks(summary, draws)
    expected = GaussianPredictive.from_draws(draws, precision=tau)
    for name in ("mean", "std", "variance", "epistemic_variance", DRAWS):
        torch.testing.assert_close(found[name], getattr(expected, name))
    ends = expected.interval(0.8)
    torch.testing.assert_close(found["lower"], ends[0], rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(found["upper"], ends[1], rtol=1e-6, atol=1e-5)


def test_without_a_precision_there_is_no_interval():
    with pytest.raises(ParameterError, match="need precision=tau"):
        RegressionSummary(("lower",), torch.float32)


def test_a_classification_is_that_of_a_categorical_predictive():
    summary = ClassSummary((*CLASSES, DRAWS), torch.float32)
    logits = DRAWN.clone()
    logits[..., 2] = -torch.inf  # a class that is masked
    found = in_blocks(summary, logits)
    expected = CategoricalPredictive.averaged(logits)
    for name in (*CLASSES, DRAWS):
        torch.testing.assert_close(found[name], getattr(expected, name))


@pytest.mark.parametrize("kind", ["logit", "sigmoid", "probs"])
def test_numbers_of_any_kind_become_logits(kind):
    block = DRAWN[..., :1] if kind == "logit" else DRAWN[..., :1].sigmoid()
    if kind == "probs":
        block = DRAWN.softmax(-1)
    logits = ClassSummary((), torch.float32, kind, 1).of_output(block)
    one = {"logit": DRAWN[..., 0].sigmoid(), "sigmoid": block[..., 0]}
    expected = block if kind == "probs" else torch.stack([1 - one[kind], one[kind]], -1)
    torch.testing.assert_close(logits.softmax(-1), expected)


def test_members_take_turns():
    block = torch.arange(2 * 3 * 2).view(2, 3, 2)  # draws, rows, members
    assert pooled(block).tolist() == [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]


@pytest.mark.parametrize(
    "outputs", ["mean", (), ("mean", "probs"), ("mode",), ("mean", "mean")]
)
def test_outputs_must_be_known_and_of_one_kind(outputs):
    with pytest.raises(ParameterError, match="outputs must name some of"):
        is_of_classes(outputs)


def test_what_outputs_are_of():
    assert is_of_classes(("probs", DRAWS)) and not is_of_classes(("mean",))
    assert not is_of_classes((DRAWS,))
