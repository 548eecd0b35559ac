"""GaussianPredictive against naive restatements, scipy and exact enumeration."""

import dataclasses
import math
import pickle
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal
from torch.testing import assert_close

from caveat.errors import DrawsNotKeptError, InputTypeError, ParameterError, ShapeError
from caveat.predictive import GaussianPredictive
from caveat.predictive import mixture as mixture_source
from caveat.predictive import moments as moments_source
from tests.predictive.enumeration import regression_draws
from tests.predictive.examples import random_draws, without_draws


def mixture(draws, precision):
    """The T-component mixture, by torch.distributions."""
    n_draws, rows = draws.shape[:2]
    centres = draws.reshape(n_draws, rows, -1).transpose(0, 1)
    noise = torch.as_tensor(precision, dtype=draws.dtype).rsqrt().expand(centres.shape)
    weights = Categorical(logits=torch.zeros(rows, n_draws, dtype=draws.dtype))
    return MixtureSameFamily(weights, Independent(Normal(centres, noise), 1))


# Exact values: every mask of the three-unit net (theory.md, section 13)


@pytest.mark.parametrize(
    ("activation", "how", "mean", "variance", "log_prob"),
    [
        (
            torch.relu,
            {"input_odds": 9, "inverted": False},
            0.66,
            1.0184,
            -1.153474507284721,
        ),
        (
            torch.relu,
            {"input_odds": 9, "inverted": True},
            1.11,
            4.074844444444445,
            -1.6081527867684775,
        ),
        (
            torch.tanh,
            {"input_odds": None, "inverted": False},
            0.17851476973269,
            0.60531559266548,
            -0.78764774377091,
        ),
    ],
)
def test_three_unit_net_exactly(activation, how, mean, variance, log_prob):
    draws = regression_draws(activation, **how)
    predictive = GaussianPredictive.from_draws(draws, precision=4.0)
    y = torch.tensor([[0.5]], dtype=torch.float64)
    assert predictive.mean.item() == pytest.approx(mean, abs=1e-13)
    assert predictive.variance.item() == pytest.approx(variance, abs=1e-13)
    assert predictive.log_prob(y).item() == pytest.approx(log_prob, abs=1e-13)


# Identities


@pytest.mark.parametrize("event", [(), (1,), (3,), (2, 3)])
def test_moments_and_covariance_restated(event):
    draws, tau = random_draws(40, 5, *event), 2.5
    predictive = GaussianPredictive.from_draws(draws, precision=tau)
    flat = draws.reshape(40, 5, -1)
    outputs = flat.shape[-1]
    outer = torch.einsum("tbi,tbj->bij", flat, flat) / 40
    mean = flat.mean(0)
    expected = outer - mean[:, :, None] * mean[:, None, :] + torch.eye(outputs) / tau
    assert_close(predictive.mean, draws.mean(0))
    assert_close(predictive.covariance, expected)
    diagonal = predictive.covariance.diagonal(dim1=1, dim2=2)
    assert_close(diagonal.reshape(5, *event), predictive.variance)
    assert_close(predictive.std, predictive.variance.sqrt())
    assert_close(predictive.noise_variance, torch.full((5, *event), 1 / tau).double())
    error = draws.std(0, correction=1) / math.sqrt(40)
    assert_close(predictive.mean_error, error)


@pytest.mark.parametrize("event", [(), (1,), (3,), (2, 3)])
def test_log_prob_is_that_of_the_mixture(event):
    draws, y = random_draws(30, 5, *event), random_draws(5, *event, seed=1)
    predictive = GaussianPredictive.from_draws(draws, precision=4.0)
    expected = mixture(draws, 4.0).log_prob(y.reshape(5, -1))
    assert_close(predictive.log_prob(y), expected)


def test_a_precision_per_output_and_row():
    draws, y = random_draws(30, 5, 3), random_draws(5, 3, seed=1)
    per_output = torch.tensor([1.0, 2.0, 50.0], dtype=torch.float64)
    per_row = torch.arange(1.0, 6.0).double().unsqueeze(1)
    for tau in (per_output, per_row, per_output * per_row):
        predictive = GaussianPredictive.from_draws(draws, precision=tau)
        full = tau.expand(5, 3)
        assert torch.equal(predictive.precision, full)
        expected = mixture(draws, full.unsqueeze(1)).log_prob(y)
        assert_close(predictive.log_prob(y), expected)
        noise = predictive.covariance - torch.stack(
            [torch.cov(row.T, correction=0) for row in draws.transpose(0, 1)]
        )
        assert_close(noise, torch.diag_embed(1 / full))


def test_the_log_density_far_away_does_not_underflow():
    draws = random_draws(10, 1, 1, dtype=torch.float32)
    predictive = GaussianPredictive.from_draws(draws, precision=1e4)
    value = predictive.log_prob(torch.tensor([[100.0]]))
    assert -6e7 < value.item() < -4e7


@pytest.mark.parametrize("tau", [0.3, 4.0, 1e4, 1e14])
@pytest.mark.parametrize("level", [1e-4, 0.025, 0.5, 0.9])
def test_quantile_is_the_root_of_the_mixture_cdf(tau, level):
    draws = random_draws(57, 4) * 3 + torch.tensor([0.0, 5.0, -1e3, 1e6]).double()
    predictive = GaussianPredictive.from_draws(draws, precision=tau)
    found, noise = predictive.quantile(level), tau**-0.5
    for column in range(4):
        centres = draws[:, column].numpy()
        middle = centres.mean()

        def excess(x, centres=centres - middle):
            return stats.norm.cdf((x - centres) / noise).mean() - level

        reach = 40 * (1 + noise)
        root = middle + optimize.brentq(excess, -reach, reach, xtol=1e-13)
        error = abs(found[column].item() - root)
        assert error < 1e-6 * predictive.std[column].item() + 1e-9


def test_quantile_of_equal_draws_is_normal():
    predictive = GaussianPredictive.from_draws(torch.ones(3, 2, 1), precision=4.0)
    expected = 1 + 0.5 * stats.norm.ppf([0.1, 0.975])
    assert_close(
        predictive.quantile([0.1, 0.975])[:, 0, 0].numpy(), np.float32(expected)
    )


def test_quantile_at_a_gap_of_the_mixture_lies_in_the_gap():
    predictive = GaussianPredictive.from_draws(
        torch.tensor([[0.0], [1.0]]), precision=1e12
    )
    assert 0 < predictive.quantile(0.5).item() < 1


def test_quantile_shapes_and_interval():
    predictive = GaussianPredictive.from_draws(random_draws(20, 5, 2), precision=4.0)
    both = predictive.quantile([0.05, 0.95])
    lower, upper = predictive.interval(0.9)
    assert both.shape == (2, 5, 2)
    assert_close(both, torch.stack([lower, upper]))
    assert_close(predictive.quantile(torch.tensor(0.05)), lower, atol=1e-6, rtol=0)
    assert predictive.quantile((0.5,)).shape == (1, 5, 2)
    assert (lower < predictive.mean).all() and (predictive.mean < upper).all()


def test_interval_holds_new_observations_at_its_level():
    """Binomial test on 20,000 new observations; rejects at 1e-6."""
    generator = torch.Generator().manual_seed(5)
    draws = torch.randn(7, 1, generator=generator)
    lower, upper = GaussianPredictive.from_draws(draws, precision=4.0).interval(0.8)
    centres = draws[torch.randint(7, (20_000,), generator=generator), 0]
    y = centres + 0.5 * torch.randn(20_000, generator=generator)
    inside = int(((y > lower) & (y < upper)).sum())
    assert stats.binomtest(inside, 20_000, 0.8).pvalue > 1e-6


# A precision for each draw


def random_precision(*shape, seed=3):
    return (2 * random_draws(*shape, seed=seed)).exp()


@pytest.mark.parametrize("event", [(), (1,), (3,), (2, 3)])
def test_a_precision_for_each_draw(event):
    """Moments by the law of total variance, density by torch.distributions."""
    draws, y = random_draws(30, 5, *event), random_draws(5, *event, seed=1)
    tau = random_precision(30, 5, *event)
    predictive = GaussianPredictive.from_draws(draws, precision=tau)
    noise = (1 / tau).mean(0)
    assert_close(predictive.noise_variance, noise)
    assert_close(predictive.precision, 1 / noise)
    assert_close(predictive.variance, draws.var(0, correction=0) + noise)
    assert_close(predictive.draw_precision, tau)
    own = tau.reshape(30, 5, -1).transpose(0, 1)
    expected = mixture(draws, own).log_prob(y.reshape(5, -1))
    assert_close(predictive.log_prob(y), expected)
    shared = GaussianPredictive.from_draws(draws, precision=4.0).covariance
    extra = torch.diag_embed((noise - 0.25).reshape(5, -1))
    assert_close(predictive.covariance, shared + extra)


@pytest.mark.parametrize("level", [1e-4, 0.025, 0.5, 0.9])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_quantile_with_a_precision_for_each_draw(level, size):
    """Standard deviations from about 0.01 to 100 in one mixture."""
    draws = random_draws(57, 4) * 3 + torch.tensor([0.0, 5.0, -1e3, 1e6]).double()
    tau = random_precision(57, 4) ** 2 * size
    predictive = GaussianPredictive.from_draws(draws, precision=tau)
    found = predictive.quantile(level)
    for column in range(4):
        middle = draws[:, column].mean().item()
        centres = draws[:, column].numpy() - middle
        noise = tau[:, column].rsqrt().numpy()

        def excess(x, centres=centres, noise=noise):
            return stats.norm.cdf((x - centres) / noise).mean() - level

        reach = 40 * (1 + noise.max())
        root = middle + optimize.brentq(excess, -reach, reach, xtol=1e-13)
        error = abs(found[column].item() - root)
        assert error < 1e-6 * predictive.std[column].item() + 1e-9


def test_equal_precisions_of_draws_are_one_precision():
    draws, y = random_draws(20, 4, 2), random_draws(4, 2, seed=1)
    shared = GaussianPredictive.from_draws(draws, precision=4.0)
    each = GaussianPredictive.from_draws(draws, precision=torch.full((20, 1, 1), 4.0))
    assert_close(each.log_prob(y), shared.log_prob(y))
    assert_close(each.covariance, shared.covariance)
    assert_close(each.quantile(0.2), shared.quantile(0.2))
    assert_close(shared.draw_precision, each.draw_precision)


def test_rows_are_cut_and_joined_with_their_precisions():
    draws, y = random_draws(20, 6, 2), random_draws(6, 2, seed=1)
    whole = GaussianPredictive.from_draws(draws, precision=random_precision(20, 6, 2))
    parts = [whole[:2], whole[[2, 3]], whole[4:]]
    joined = GaussianPredictive.concatenate(parts)
    for part, rows in ((joined, slice(0, 6)), (whole[[5, 1]], [5, 1])):
        assert_close(part.log_prob(y[rows]), whole.log_prob(y)[rows])
        assert_close(part.quantile(0.3), whole.quantile(0.3)[rows])
        assert_close(part.covariance, whole.covariance[rows])
    with pytest.raises(ShapeError, match="kept tensors"):
        GaussianPredictive.concatenate([whole, whole.with_precision(1.0)])


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 12))
def test_blocks_are_invisible_with_a_precision_for_each_draw(seed, n_draws, block):
    draws, y = random_draws(n_draws, 4, 2, seed=seed), random_draws(4, 2, seed=seed + 1)
    tau = random_precision(n_draws, 4, 2, seed=seed + 2)
    whole = GaussianPredictive.from_draws(draws, precision=tau)
    expected = whole.variance, whole.log_prob(y), whole.quantile(0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moments_source, "BLOCK", block)
        patch.setattr(mixture_source, "BLOCK", block)
        cut = GaussianPredictive.from_draws(draws, precision=tau)
        found = cut.variance, cut.log_prob(y), cut.quantile(0.1)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, rtol=1e-5, atol=1e-5)


# Other precisions, other units


def test_with_precision_is_from_draws_again():
    draws, y = random_draws(20, 4, 2), random_draws(4, 2, seed=1)
    start = GaussianPredictive.from_draws(draws, precision=1.0)
    for tau in (9.0, torch.tensor([2.0, 3.0]), random_precision(20, 4, 2)):
        expected = GaussianPredictive.from_draws(draws, precision=tau)
        for found in (start.with_precision(tau), expected.with_precision(tau)):
            assert_close(found.log_prob(y), expected.log_prob(y))
            assert_close(found.covariance, expected.covariance)
            assert found.draws.data_ptr() == draws.data_ptr()
    bare = without_draws(draws, 1.0)
    assert_close(bare.with_precision(9.0).variance, start.with_precision(9.0).variance)
    with pytest.raises(DrawsNotKeptError, match="A precision for each draw needs"):
        bare.with_precision(random_precision(20, 4, 2))


@pytest.mark.parametrize("kind", ["shared", "per draw", "not kept"])
def test_rescale_is_the_predictive_of_rescaled_outputs(kind):
    draws, y = random_draws(20, 4, 2), random_draws(4, 2, seed=1)
    scale, shift = torch.tensor([10.0, -0.5]).double(), torch.tensor([3.0, 7.0])
    tau = random_precision(20, 4, 2) if kind == "per draw" else torch.tensor(4.0)
    moved, own = draws * scale + shift, tau / scale.square()
    if kind == "not kept":
        found = without_draws(draws, tau).rescale(scale, shift)
        expected = without_draws(moved, own)
    else:
        found = GaussianPredictive.from_draws(draws, precision=tau)
        density = found.log_prob(y) - scale.abs().log().sum()
        found = found.rescale(scale, shift)
        expected = GaussianPredictive.from_draws(moved, precision=own)
        assert_close(found.log_prob(y * scale + shift), density)
        assert_close(found.quantile(0.2), expected.quantile(0.2), atol=2e-5, rtol=0)
    for name in ("mean", "variance", "covariance", "precision", "mean_error"):
        assert_close(getattr(found, name), getattr(expected, name))


def test_rescale_refuses_what_is_no_unit():
    predictive = GaussianPredictive.from_draws(torch.zeros(2, 3, 2), precision=1.0)
    with pytest.raises(ParameterError, match="scale must not be 0"):
        predictive.rescale([1.0, 0.0])
    with pytest.raises(ParameterError, match="shift must be finite"):
        predictive.rescale(1.0, math.nan)
    with pytest.raises(ShapeError, match=r"scale must be a number or one per output"):
        predictive.rescale(torch.ones(3, 1))


# Properties


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 12))
def test_blocks_and_chunks_are_invisible(seed, n_draws, block):
    draws, y = random_draws(n_draws, 4, 2, seed=seed), random_draws(4, 2, seed=seed + 1)
    whole = GaussianPredictive.from_draws(draws, precision=4.0)
    expected = whole.covariance, whole.log_prob(y), whole.quantile(0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moments_source, "BLOCK", block)
        patch.setattr(mixture_source, "BLOCK", block)
        cut = GaussianPredictive.from_draws(draws, precision=4.0)
        found = cut.covariance, cut.log_prob(y), cut.quantile(0.1)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, rtol=1e-9, atol=2e-6)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.floats(1e-3, 1e3), st.integers(1, 10))
def test_variance_is_at_least_the_noise(seed, tau, n_draws):
    predictive = GaussianPredictive.from_draws(
        random_draws(n_draws, 3, seed=seed), precision=tau
    )
    assert (predictive.epistemic_variance >= 0).all()
    assert (predictive.variance >= predictive.noise_variance).all()


@settings(max_examples=30)
@given(st.permutations(range(5)))
def test_permuting_rows_permutes_answers(order):
    draws, y = random_draws(9, 5, 2), random_draws(5, 2, seed=1)
    straight = GaussianPredictive.from_draws(draws, precision=4.0)
    mixed = GaussianPredictive.from_draws(draws[:, order], precision=4.0)
    for name in ("mean", "variance", "covariance", "mean_error"):
        assert_close(getattr(mixed, name), getattr(straight, name)[order])
    assert_close(mixed.log_prob(y[order]), straight.log_prob(y)[order])
    assert_close(mixed.quantile(0.3), straight.quantile(0.3)[order])


# Types


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_short_types_are_answered_in_float32(dtype):
    draws, y = random_draws(50, 4, 1).to(dtype), random_draws(4, 1, seed=1)
    short = GaussianPredictive.from_draws(draws, precision=4.0)
    exact = GaussianPredictive.from_draws(draws.double(), precision=4.0)
    for name in ("mean", "std", "covariance", "mean_error"):
        found = getattr(short, name)
        assert found.dtype == torch.float32
        assert_close(found.double(), getattr(exact, name), rtol=1e-5, atol=1e-6)
    found, expected = short.log_prob(y), exact.log_prob(y.float().double())
    assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    assert_close(short.interval()[0].double(), exact.interval()[0], atol=1e-5, rtol=0)


def test_it_is_a_value():
    draws = random_draws(5, 3, 1).requires_grad_()
    predictive = GaussianPredictive.from_draws(draws, precision=4.0)
    for name in ("mean", "n_draws", "variance", "anything"):
        with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
            setattr(predictive, name, 1)
    assert not predictive.log_prob(random_draws(3, 1)).requires_grad
    copy = pickle.loads(pickle.dumps(predictive))
    assert torch.equal(copy.std, predictive.std)


def test_draws_are_held_not_copied():
    draws = random_draws(5, 3, 1)
    predictive = GaussianPredictive.from_draws(draws, precision=4.0)
    assert predictive.draws.data_ptr() == draws.data_ptr()


# Without the draws


def test_without_draws_moments_and_small_covariances_remain():
    draws = random_draws(30, 4, 3)
    kept = GaussianPredictive.from_draws(draws, precision=4.0)
    bare = without_draws(draws, 4.0)
    for name in ("mean", "variance", "epistemic_variance", "mean_error", "covariance"):
        assert_close(getattr(bare, name), getattr(kept, name))
    one = without_draws(draws[..., :1], 4.0)
    assert_close(one.covariance, one.variance.unsqueeze(-1))
    assert one[:0].covariance.shape == (0, 1, 1)


@pytest.mark.parametrize(
    ("what", "ask"),
    [
        ("draws", lambda p: p.draws),
        ("log_prob", lambda p: p.log_prob(torch.zeros(2, 65))),
        ("crps", lambda p: p.crps(torch.zeros(2, 65))),
        ("sample", lambda p: p.sample(3)),
        ("The covariance of more than 64 outputs", lambda p: p.covariance),
    ],
)
def test_what_needs_draws_says_how_to_keep_them(what, ask):
    predictive = without_draws(torch.zeros(3, 2, 65), 1.0)
    message = f"{what} needs the single draws.*keep_draws=True to MCDropout.regress"
    with pytest.raises(DrawsNotKeptError, match=message):
        ask(predictive)


# Errors


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3,), r"shape \(draws, batch, \*event\).*torch.stack"),
        ((0, 3, 1), "at least one draw"),
        ((3, 0, 1), "leave out batches without rows"),
        ((3, 2, 0), "must not be empty"),
    ],
)
def test_wrong_draws(shape, message):
    with pytest.raises(ShapeError, match=message):
        GaussianPredictive.from_draws(torch.zeros(shape), precision=1.0)


@pytest.mark.parametrize(
    ("mean_shape", "y_shape", "remedy"),
    [
        ((3, 1), (3,), "pass y.reshape(3, 1)"),
        ((3,), (3, 1), "pass y.reshape(3,)"),
        ((3, 2), (3, 1), "pass one value per row and output"),
        ((3, 2), (2,), "pass one value per row and output"),
    ],
)
def test_targets_are_never_broadcast(mean_shape, y_shape, remedy):
    predictive = GaussianPredictive.from_draws(torch.zeros(2, *mean_shape), precision=1)
    with pytest.raises(ShapeError, match=re.escape(remedy)):
        predictive.log_prob(torch.zeros(y_shape))


def test_wrong_targets():
    predictive = GaussianPredictive.from_draws(torch.zeros(2, 3), precision=1)
    with pytest.raises(ParameterError, match="1 of 3 values are NaN or infinite"):
        predictive.log_prob(torch.tensor([0.0, torch.nan, 1.0]))
    with pytest.raises(InputTypeError, match="y must hold floating-point"):
        predictive.log_prob(torch.zeros(3, dtype=torch.int64))
    with pytest.raises(InputTypeError, match=r"y must be a torch.Tensor. Got list"):
        predictive.log_prob(["0", "1", "2"])


@pytest.mark.parametrize("shape", [(4,), (2,), (4, 2), (3, 4, 1), (2, 5, 1)])
def test_a_precision_of_the_wrong_shape(shape):
    message = r"one per output \(1,\), or one per row \(4, 1\)"
    with pytest.raises(ShapeError, match=message):
        GaussianPredictive.from_draws(torch.zeros(2, 4, 1), precision=torch.ones(shape))


@pytest.mark.parametrize("tau", [0.0, -1.0, math.inf, math.nan, 1e-60])
def test_a_precision_out_of_range(tau):
    with pytest.raises(
        ParameterError, match=r"precision .* must be finite and above 0"
    ):
        GaussianPredictive.from_draws(torch.zeros(2, 4, 1), precision=tau)


def test_draws_that_are_not_finite_are_counted():
    draws = torch.zeros(5, 4, 2)
    draws[1, 2, 0] = torch.nan
    draws[3, 2, 1] = -torch.inf
    message = r"2 of 5 draws and 1 of 4 rows are not \(first: draw 1, row 2\)"
    with pytest.raises(ParameterError, match=message):
        GaussianPredictive.from_draws(draws, precision=1.0)


def test_draws_whose_squares_overflow():
    draws = torch.tensor([[-1e30], [1e30]])
    with pytest.raises(ParameterError, match=r"overflow torch.float32.*draws.double"):
        GaussianPredictive.from_draws(draws, precision=1.0)
    assert GaussianPredictive.from_draws(draws.double(), precision=1.0).mean == 0


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, [0.5, 2.0], math.nan, []])
def test_levels_out_of_range(q):
    predictive = GaussianPredictive.from_draws(torch.zeros(2, 3), precision=1)
    with pytest.raises(ParameterError, match="q must"):
        predictive.quantile(q)


def test_levels_of_the_wrong_kind():
    predictive = GaussianPredictive.from_draws(torch.zeros(2, 3), precision=1)
    for q in (None, "0.5", [None]):
        with pytest.raises(InputTypeError, match="q must be a number between 0 and 1"):
            predictive.quantile(q)
    with pytest.raises(ParameterError, match="level must lie strictly"):
        predictive.interval(95)


def test_moments_beside_the_draws():
    """Better moments change mean and variance, not density and quantiles."""
    draws, y = torch.randn(30, 4, 2).double(), torch.randn(4, 2).double()
    plain = GaussianPredictive.from_draws(draws, precision=2.0)
    mean, variance = torch.zeros(4, 2).double(), torch.ones(4, 2).double()
    joint = torch.eye(2).double().expand(4, 2, 2)
    found = plain.with_moments(
        mean, variance, method="exact", mean_error=0.1 * variance, covariance=joint
    )
    assert plain.method == "sampled"
    assert not plain.exact
    assert found.exact
    assert torch.equal(found.variance, variance + 0.5)
    assert torch.equal(found.covariance, 1.5 * joint)
    assert torch.equal(found.log_prob(y), plain.log_prob(y))
    assert torch.equal(found.quantile(0.2), plain.quantile(0.2))
    assert torch.equal(found.rescale(-3.0).mean_error, 0.1 * variance * 3.0)
    assert "30 draws (kept), exact moments" in repr(found)
