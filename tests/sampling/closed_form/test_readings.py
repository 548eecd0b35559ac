"""The last layer integrated: unbiased, less noisy, and everything else as before."""

import pytest
import torch
from torch import nn

from caveat import MCDropout
from caveat.sampling.closed_form.conditional import ConditionalMoments
from caveat.sampling.closed_form.last_layer import LastLayer, last_layer_of
from caveat.sampling.endings import find_ending
from caveat.sampling.inputs import Batch
from caveat.sampling.rewriting import without_writes
from caveat.sampling.tape import Ref
from tests.sampling.closed_form.nets import (
    assert_same,
    enumerated,
    masks,
    numbers,
    seeded,
)
from tests.statistics import assert_mean_is, assert_variance_is

X = numbers(2, 2, seed=1)


def two_sites() -> nn.Sequential:
    return seeded(
        lambda: nn.Sequential(
            nn.Dropout(0.2),
            nn.Linear(2, 3),
            nn.Tanh(),
            nn.Dropout(0.4),
            nn.Linear(3, 2),
        )
    )


MODEL = two_sites()


def run(first, second):
    return MODEL[4](MODEL[1](X * first).tanh() * second)


def conditional(first):
    return MODEL[4](MODEL[1](X * first).tanh())


def integrated(x=X, **settings):
    seed = settings.pop("seed", 0)
    mc = MCDropout(MODEL, seed=seed, analytic=True)
    settings.setdefault("n_draws", 40)
    return mc.regress(x, precision=4.0, **settings)


def test_law_of_total_variance_by_enumeration():
    """E96: what the reading averages is exact, if all first masks are given."""
    _, total = enumerated(run, masks(0.2, 2), masks(0.4, 3))
    mean, between = enumerated(conditional, masks(0.2, 2))
    weight, rate = MODEL[4].weight.detach(), 0.4
    within = torch.zeros_like(total)
    for mask, chance in masks(0.2, 2):
        hidden = MODEL[1](X * mask).tanh().detach()
        spread = hidden.square() * rate / (1 - rate)
        within += chance * torch.einsum("dk,bk,ek->bde", weight, spread, weight)
    assert_same(total, within + between)
    assert_same(mean, enumerated(run, masks(0.2, 2), masks(0.4, 3))[0])


def earlier_noise(
    n_draws: int, *, seed: int = 5, stratified: bool = False
) -> tuple[LastLayer, torch.Tensor]:
    """The last layer, and its features in many draws."""
    session = MCDropout(MODEL, seed=seed, stratified=stratified)._sampler.session(
        Batch.of((X,), {}, axis=0, model=MODEL)
    )
    tape = session.tape.copy()
    without_writes(tape)
    layer = last_layer_of(find_ending(tape, tape.outputs[0].number))
    tape.outputs = [*tape.outputs, Ref(layer.features)]
    leaves = session.watching(tape).leaves(session.seed, range(n_draws))
    return layer, torch.stack([features.clone() for _, features in leaves])


def test_unbiased_and_as_precise_as_theory_says():
    """Means of 8 draws, 400 times: right, with the variance of conditional means."""
    layer, features = earlier_noise(3200)
    means = layer.conditional_mean(features)
    exact, total = enumerated(run, masks(0.2, 2), masks(0.4, 3))
    _, between = enumerated(conditional, masks(0.2, 2))
    spread = between.diagonal(dim1=1, dim2=2)
    found = means.view(400, 8, *means.shape[1:]).mean(1)
    assert_mean_is(found, exact)
    assert_variance_is(found, spread / 8)
    gain = total.diagonal(dim1=1, dim2=2) / spread
    assert gain.min() > 1.5


def test_stratified_draws_are_unbiased_and_more_precise():
    """Means of 64 draws, 50 times: a tenth of the variance, or less."""
    layer, features = earlier_noise(3200, stratified=True)
    means = layer.conditional_mean(features)
    exact, _ = enumerated(run, masks(0.2, 2), masks(0.4, 3))
    _, between = enumerated(conditional, masks(0.2, 2))
    found = means.view(50, 64, *means.shape[1:]).mean(1)
    assert_mean_is(found, exact)
    assert (found.var(0) < 0.1 * between.diagonal(dim1=1, dim2=2) / 64).all()


def test_variance_is_right_and_less_noisy():
    """Variances of 32 draws, 100 times, beside those of plain draws."""
    layer, features = earlier_noise(3200)
    better = []
    for block in features.split(32):
        means = layer.conditional_mean(block)
        moments = ConditionalMoments.of(means, block.square().sum(0))
        better.append(moments.belief(layer)[0].variance)
    draws = MCDropout(MODEL, seed=5, stratified=False).draws(X, n_draws=3200)
    plain = draws.view(100, 32, *draws.shape[1:]).var(1, correction=0)
    exact = enumerated(run, masks(0.2, 2), masks(0.4, 3))[1]
    between = enumerated(conditional, masks(0.2, 2))[1]
    expected = (exact - between / 32).diagonal(dim1=1, dim2=2)
    found = torch.stack(better)
    assert_mean_is(found, expected)  # divisor T, as in the papers
    assert (plain.var(0) / found.var(0)).min() > 2.0


def test_many_draws_converge():
    found = integrated(n_draws=1000)
    mean, total = enumerated(run, masks(0.2, 2), masks(0.4, 3))
    assert ((found.mean - mean) / found.mean_error).abs().max() < 5
    noise = torch.eye(2).double() / 4.0
    assert torch.allclose(found.covariance, total + noise, rtol=0.2, atol=0.03)
    assert torch.allclose(
        found.covariance.diagonal(dim1=1, dim2=2), found.variance, rtol=1e-9
    )


def test_draws_stay_as_they_are():
    y = numbers(2, 2, seed=7)
    found, plain = (
        MCDropout(MODEL, seed=3, analytic=a).regress(X, n_draws=70, precision=4.0)
        for a in (True, False)
    )
    assert found.method == "rao-blackwell"
    assert not found.exact
    assert "70 draws (kept), rao-blackwell moments" in repr(found)
    assert torch.allclose(found.draws, plain.draws, rtol=1e-12)
    assert torch.allclose(found.log_prob(y), plain.log_prob(y), rtol=1e-10)
    assert (found.mean_error < plain.mean_error).all()


def test_streaming_and_batches_give_the_same():
    x = numbers(7, 2)
    whole = integrated(x, n_draws=70)
    for settings in ({"keep_draws": False}, {"batch_size": 3}):
        part = integrated(x, n_draws=70, **settings)
        for name in ("mean", "variance", "covariance", "mean_error"):
            assert_same(getattr(part, name), getattr(whole, name), 1e-10)
        assert part.method == whole.method


def test_a_tolerance_needs_fewer_draws():
    """By default, as there the draws are chosen by their error."""
    settings = {"precision": 4.0, "tolerance": 0.02}
    found = MCDropout(MODEL, seed=0).regress(X, **settings)
    plain = MCDropout(MODEL, seed=0, analytic=False).regress(X, **settings)
    assert found.method == "rao-blackwell"
    assert 2 * found.n_draws <= plain.n_draws
    assert (found.mean_error / found.std).max() <= 0.02


def test_an_exact_head_stops_after_the_first_round():
    head = seeded(lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 1)))
    found = MCDropout(head, seed=0).regress(X, precision=1.0, tolerance=0.001)
    assert found.exact
    assert found.n_draws == 32
    assert len(found.draws) == 32


def test_small_networks_are_left_alone_by_default():
    found = MCDropout(MODEL, seed=0).regress(X, n_draws=20, precision=4.0)
    assert found.method == "sampled"


def test_wide_networks_are_integrated_by_default():
    """Where it costs next to nothing: a last layer far smaller than the rest."""
    model = seeded(
        lambda: nn.Sequential(
            nn.Dropout(0.05),
            nn.Conv2d(1, 16, 5),
            nn.ReLU(),
            nn.Conv2d(16, 8, 5),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(0.5),
            nn.Linear(8, 1),
        ),
        scale=1.0,
    )
    found = MCDropout(model, seed=0).regress(
        numbers(2, 1, 12, 12), n_draws=20, precision=4.0
    )
    assert found.method == "rao-blackwell"


def test_one_draw():
    found = integrated(n_draws=1)
    assert found.mean_error.isinf().all()
    assert found.epistemic_variance.gt(0).all()


class TwoOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = MODEL

    def forward(self, x):
        y = self.net(x)
        return {"y": y, "other": x}


def test_the_output_is_picked():
    model = TwoOutputs().double()
    mc = MCDropout(model, seed=0, analytic=True)
    whole = mc.regress(X, n_draws=40, precision=4.0, output=lambda out: out["y"])
    assert whole.method == "rao-blackwell"
    same = integrated().mean
    assert whole.mean.shape == same.shape
    part = mc.regress(X, n_draws=40, precision=4.0, output=lambda out: out["y"][:, :1])
    assert part.method == "sampled"


def test_rows_can_be_chosen_and_rescaled():
    found = integrated(numbers(5, 2))
    part = found[1:3]
    assert part.method == found.method
    assert torch.equal(part.mean_error, found.mean_error[1:3])
    other = found.rescale(-2.0, 1.0)
    assert_same(other.mean_error, 2.0 * found.mean_error)
    assert_same(other.covariance, 4.0 * found.covariance)
    assert other.with_precision(1.0).method == found.method


def test_values_that_are_not_finite_are_an_error():
    broken = two_sites()
    broken[4].weight.data[0, 0] = torch.inf
    mc = MCDropout(broken, seed=0, analytic=True)
    for keep in (True, False):
        with pytest.raises(ValueError, match="must be finite"):
            mc.regress(X, n_draws=20, precision=4.0, keep_draws=keep)
