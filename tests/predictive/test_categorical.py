"""CategoricalPredictive against naive restatements and exact enumeration."""

import dataclasses
import math
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from caveat._random import stream_key
from caveat._strata import stratified_uniform
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.predictive import CategoricalPredictive
from caveat.predictive import moments as moments_source
from tests.predictive.enumeration import classifier_logits
from tests.predictive.examples import ANSWERS, random_logits


def shares_not_the_mode(labels: torch.Tensor, n_classes: int) -> torch.Tensor:
    """1 - count(mode) / T for labels (draws, batch), by one-hot counting."""
    one_hot = torch.nn.functional.one_hot(labels, n_classes).double()
    return 1 - one_hot.mean(0).amax(-1)


# Exact values: every mask of the classifier (theory.md, section 13)


def test_classifier_exactly():
    predictive = CategoricalPredictive.from_logits(classifier_logits())
    expected = torch.tensor([[0.5225498971728, 0.4774501028272]], dtype=torch.float64)
    assert_close(predictive.probs, expected, atol=1e-12, rtol=0)
    assert predictive.entropy.item() == pytest.approx(0.692129839794, abs=1e-12)
    assert predictive.expected_entropy.item() == pytest.approx(
        0.641960067313, abs=1e-12
    )
    assert predictive.mutual_information.item() == pytest.approx(
        0.050169772481, abs=1e-12
    )
    loss = -classifier_logits().log_softmax(-1)[..., 0].mean()
    assert loss.item() == pytest.approx(0.697904198347, abs=1e-12)


def test_variation_ratios_of_the_classifier():
    logits = classifier_logits().repeat(5000, 1, 1)
    predictive = CategoricalPredictive.from_logits(logits)
    share = 1 - 0.5225498971728
    assert abs(predictive.variation_ratio.item() - share) < 5 * math.sqrt(
        share * (1 - share) / len(logits)
    )
    favoured = classifier_logits().argmax(-1)
    assert_close(predictive.argmax_variation_ratio, shares_not_the_mode(favoured, 2))


# Identities


@pytest.mark.parametrize("extra", [(), (2,), (2, 3)])
def test_answers_restated(extra):
    logits = random_logits(40, 5, *extra, 4)
    predictive = CategoricalPredictive.from_logits(logits)
    draws = logits.softmax(-1)
    probs = draws.mean(0)
    entropy = -(probs * probs.log()).sum(-1)
    expected = -(draws * draws.log()).sum(-1).mean(0)
    assert_close(predictive.probs, probs)
    assert_close(predictive.log_probs, probs.log())
    assert_close(predictive.label, probs.argmax(-1))
    assert_close(predictive.mean_error, draws.std(0, correction=1) / math.sqrt(40))
    assert_close(predictive.entropy, entropy)
    assert_close(predictive.expected_entropy, expected)
    assert_close(predictive.mutual_information, entropy - expected)
    assert_close(predictive.logits_mean, logits.mean(0))
    assert_close(predictive.logits_std, logits.std(0, correction=0))
    ratio = shares_not_the_mode(logits.argmax(-1), 4)
    assert_close(predictive.argmax_variation_ratio, ratio)
    assert predictive.draws is not None and predictive.n_draws == 40


def test_probabilities_are_averaged_not_logits():
    logits = torch.tensor([[[9.0, 0.0]], [[-1.0, 0.0]]])
    predictive = CategoricalPredictive.from_logits(logits)
    assert_close(predictive.probs, logits.softmax(-1).mean(0))
    assert not torch.allclose(predictive.probs, logits.mean(0).softmax(-1), atol=0.1)


def test_labels_are_sampled_by_the_inverse_cdf_at_one_uniform_per_draw():
    logits = random_logits(200, 6, 4)
    uniforms = stratified_uniform(stream_key(3, "labels"), range(200), (1,))
    labels = torch.stack(
        [
            torch.searchsorted(p.cumsum(-1), u.repeat(6, 1)).squeeze(1)
            for p, u in zip(logits.softmax(-1), uniforms, strict=True)
        ]
    )
    found = CategoricalPredictive.from_logits(logits, seed=3).variation_ratio
    assert_close(found, shares_not_the_mode(labels, 4))


def test_sampled_variation_ratio_tends_to_one_minus_the_largest_probability():
    """Within 5 standard errors of a binomial share, each of 50 rows."""
    logits = random_logits(50, 5).expand(20_000, 50, 5)
    predictive = CategoricalPredictive.from_logits(logits, seed=1)
    limit = 1 - predictive.probs.amax(-1)
    error = (limit * (1 - limit) / 20_000).sqrt()
    gap = (predictive.variation_ratio - limit).abs()
    clear = predictive.probs.topk(2).values.diff().abs().squeeze(1) > 0.05
    assert (gap < 5 * error)[clear].all() and clear.sum() > 40


def test_the_seed_decides_the_sampled_labels_only():
    logits = random_logits(100, 6, 3)
    one, same, other = (
        CategoricalPredictive.from_logits(logits, seed=s) for s in (0, 0, 1)
    )
    assert torch.equal(one.variation_ratio, same.variation_ratio)
    assert not torch.equal(one.variation_ratio, other.variation_ratio)
    for name in set(ANSWERS) - {"variation_ratio"}:
        assert torch.equal(getattr(one, name), getattr(other, name))


def test_log_prob_picks_the_class():
    predictive = CategoricalPredictive.from_logits(random_logits(20, 3, 2, 4))
    y = torch.tensor([[0, 3], [1, 1], [2, 0]], dtype=torch.int32)
    expected = predictive.probs.log().gather(-1, y.long()[..., None]).squeeze(-1)
    assert_close(predictive.log_prob(y), expected)


# Properties


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.integers(2, 6),
    st.sampled_from([1e-3, 1.0, 30.0, 1e4]),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_information_lies_between_zero_and_entropy(
    seed, n_draws, classes, scale, dtype
):
    logits = random_logits(n_draws, 4, classes, seed=seed, dtype=dtype) * scale
    p = CategoricalPredictive.from_logits(logits)
    rounding = torch.finfo(dtype).eps
    assert (p.mutual_information >= 0).all()
    assert (p.mutual_information <= p.entropy).all()
    assert (p.entropy <= math.log(classes) * (1 + rounding)).all()
    assert (p.expected_entropy <= p.entropy).all()
    for ratio in (p.variation_ratio, p.argmax_variation_ratio):
        assert ((ratio >= 0) & (ratio <= 1 - 1 / classes + rounding)).all()
    assert_close(p.probs.sum(-1), torch.ones(4, dtype=dtype))


@settings(max_examples=30)
@given(st.permutations(range(5)))
def test_permuting_rows_permutes_answers(order):
    logits = random_logits(15, 5, 3)
    straight = CategoricalPredictive.from_logits(logits)
    mixed = CategoricalPredictive.from_logits(logits[:, order])
    for name in ANSWERS:
        assert_close(getattr(mixed, name), getattr(straight, name)[order])


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.integers(1, 60))
def test_blocks_are_invisible(seed, block):
    logits = random_logits(15, 5, 3, seed=seed)
    whole = CategoricalPredictive.from_logits(logits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moments_source, "BLOCK", block)
        cut = CategoricalPredictive.from_logits(logits)
    for name in ANSWERS:
        assert_close(getattr(cut, name), getattr(whole, name), rtol=1e-9, atol=1e-9)


# Numbers at the edge


def test_enormous_logits():
    logits = torch.tensor([[[1e4, -1e4, 0.0]], [[1e4, -1e4, 0.0]]])
    predictive = CategoricalPredictive.from_logits(logits)
    for name in ANSWERS:
        assert getattr(predictive, name).isfinite().all(), name
    assert predictive.entropy.item() == 0
    assert predictive.probs.tolist() == [[1.0, 0.0, 0.0]]
    assert predictive.log_prob(torch.tensor([1])).item() == -2e4


def test_masked_classes():
    masked = torch.tensor([0.0, -torch.inf, 1.0, -torch.inf])
    logits = masked.repeat(50, 2, 1)
    logits[7:, 1, 3] = 0.5
    predictive = CategoricalPredictive.from_logits(logits)
    assert (predictive.probs[:, 1] == 0).all()
    assert not predictive.entropy.isnan().any()
    assert predictive.mutual_information[0] < 1e-6 < predictive.mutual_information[1]
    assert predictive.logits_mean[0].tolist() == [0.0, -math.inf, 1.0, -math.inf]
    assert predictive.logits_std[0].tolist() == [0, 0, 0, 0]
    assert predictive.logits_std[1].tolist() == [0, 0, 0, math.inf]
    assert predictive.log_prob(torch.tensor([1, 1])).tolist() == [-math.inf] * 2


def test_a_class_of_probability_zero_is_never_sampled():
    logits = torch.full((20_000, 1, 5), -torch.inf)
    logits[..., 1] = logits[..., 3] = 0.0
    ratio = CategoricalPredictive.from_logits(logits).variation_ratio.item()
    assert abs(ratio - 0.5) < 5 * 0.5 / math.sqrt(20_000)
    assert ratio <= 0.5  # two classes only: the mode has at least half


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_short_types_are_answered_in_float32(dtype):
    logits = random_logits(50, 4, 3).to(dtype)
    short = CategoricalPredictive.from_logits(logits)
    exact = CategoricalPredictive.from_logits(logits.double())
    for name in set(ANSWERS) - {"label"}:
        found = getattr(short, name)
        assert found.dtype == torch.float32
        assert_close(found.double(), getattr(exact, name), rtol=1e-5, atol=1e-6)


def test_it_is_a_value():
    predictive = CategoricalPredictive.from_logits(random_logits(5, 3, 2))
    for name in ("probs", "label", "anything"):
        with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
            setattr(predictive, name, 1)
    copy = pickle.loads(pickle.dumps(predictive))
    assert torch.equal(copy.entropy, predictive.entropy)


# Errors


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 1), (5, 3, 4, 1)])
def test_one_logit_needs_a_class_axis(shape):
    message = r"two or more classes last.*stack \[0, z\].*output="
    with pytest.raises(ShapeError, match=message):
        CategoricalPredictive.from_logits(torch.zeros(shape))


@pytest.mark.parametrize(
    ("shape", "message"),
    [((5,), "too few axes"), ((0, 3, 2), "at least one draw"), ((5, 0, 2), "empty")],
)
def test_wrong_logits(shape, message):
    with pytest.raises(ShapeError, match=message):
        CategoricalPredictive.from_logits(torch.zeros(shape))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_not_finite_are_counted(bad):
    logits = torch.zeros(5, 4, 3)
    logits[2, 1, 0] = logits[2, 3, 1] = bad
    message = r"1 of 5 draws and 2 of 4 rows are not \(first: draw 2, row 1\)"
    with pytest.raises(ParameterError, match=message):
        CategoricalPredictive.from_logits(logits)


def test_bad_logits_are_counted_over_all_blocks(monkeypatch):
    logits = torch.zeros(5, 4, 3)
    logits[1, 0, 0] = logits[4, 2, 1] = math.nan
    monkeypatch.setattr(moments_source, "BLOCK", 12)
    message = r"2 of 5 draws and 2 of 4 rows are not \(first: draw 1, row 0\)"
    with pytest.raises(ParameterError, match=message):
        CategoricalPredictive.from_logits(logits)


def test_a_row_with_all_classes_masked():
    logits = torch.zeros(5, 4, 3)
    logits[0, 2] = -torch.inf
    with pytest.raises(ParameterError, match="1 of 5 draws and 1 of 4 rows"):
        CategoricalPredictive.from_logits(logits)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (["a", "b", "b"], InputTypeError, "y must be a torch.Tensor. Got list"),
        ([0.0, 1.0, 1.0], InputTypeError, "Got torch.float64"),
        (
            torch.zeros(3),
            InputTypeError,
            r"integer dtype. Got torch.float32.*y.long\(\)",
        ),
        (torch.zeros(3, dtype=torch.bool), InputTypeError, "Got torch.bool"),
        (torch.tensor([[0], [1], [1]]), ShapeError, r"shape \(3,\).*Got \(3, 1\)"),
        (torch.tensor([0, 5, -100]), ParameterError, "from 0 to 1. Got -100, 5;"),
    ],
)
def test_wrong_labels(y, error, message):
    predictive = CategoricalPredictive.from_logits(torch.zeros(2, 3, 2))
    with pytest.raises(error, match=message):
        predictive.log_prob(y)
