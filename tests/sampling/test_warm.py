"""WarmCalls: the short road gives what the long one gives, and is left when it must."""

import gc
import weakref

import pytest
import torch
from torch import nn

from caveat import MCDropout
from caveat.errors import ParameterError


def net() -> nn.Module:
    torch.manual_seed(0)
    layers = (nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 8), nn.Tanh())
    return nn.Sequential(*layers, nn.Dropout(0.2), nn.Linear(8, 2)).eval()


def inputs(n: int, rows: int = 2) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(n)
    return [torch.randn(rows, 3, generator=generator) for _ in range(n)]


def warmed(model: nn.Module, rows: int = 2) -> MCDropout:
    """A sampler whose next call of this kind takes the short road."""
    mc = MCDropout(model, seed=0)
    for x in inputs(4, rows):
        mc.regress(x, n_draws=40, precision=1.0)
        mc.classify(x, n_draws=40)
    assert mc._warm._met
    return mc


def takes_short_road(mc: MCDropout, x: torch.Tensor) -> bool:
    return mc._warm.session(mc._sampler, (x,), {}) is not None


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_numbers_are_those_of_a_first_call(rows):
    model, x = net(), torch.randn(rows, 3, generator=torch.Generator().manual_seed(9))
    mc = warmed(model, rows)
    assert takes_short_road(mc, x)
    warm, cold = (
        sampler.regress(x, n_draws=40, precision=2.0)
        for sampler in (mc, MCDropout(net(), seed=0))
    )
    assert torch.allclose(warm.draws, cold.draws, atol=1e-6)
    assert torch.allclose(warm.mean_error, cold.mean_error, rtol=1e-4)
    assert torch.equal(warm.precision, cold.precision)
    ours = mc.classify(x, n_draws=40)
    first = MCDropout(net(), seed=0).classify(x, n_draws=40)
    assert torch.allclose(ours.probs, first.probs, atol=1e-6)
    assert ours.method == first.method


@pytest.mark.parametrize("change", ["seed", "independent", "seed, cold"])
def test_another_seed_or_design_has_its_own_numbers(change):
    """What is shared between samplers of one model is no number of theirs."""
    mc = MCDropout(net(), seed=0) if change == "seed, cold" else warmed(net())
    other = mc.independent() if change == "independent" else mc.with_seed(7)
    seed, stratified = other.seed, change != "independent"
    for x in inputs(4):  # on the long road, and on the short one
        found = other.regress(x, n_draws=40, precision=1.0).draws
        probs = other.classify(x, n_draws=40).probs
    assert takes_short_road(other, x)
    fresh = MCDropout(net(), seed=seed, stratified=stratified)
    assert torch.allclose(found, fresh.regress(x, n_draws=40, precision=1.0).draws)
    assert torch.allclose(probs, fresh.classify(x, n_draws=40).probs)
    own = mc.regress(x, n_draws=40, precision=1.0).draws
    assert not torch.allclose(found, own)
    first = MCDropout(net(), seed=0).regress(x, n_draws=40, precision=1.0).draws
    assert torch.allclose(own, first)


def test_more_draws_than_one_block_and_a_single_one():
    mc, x = warmed(net()), inputs(1)[0]
    few, many = (mc.regress(x, n_draws=n, precision=1.0).draws for n in (1, 3000))
    assert len(many) == 3000
    assert torch.allclose(few, many[:1], atol=1e-6)


def test_new_weights_are_seen():
    model, x = net(), inputs(1)[0]
    mc = warmed(model)
    before = mc.regress(x, n_draws=8, precision=1.0).draws
    with torch.no_grad():
        model[0].weight.mul_(2.0)
    after = mc.regress(x, n_draws=8, precision=1.0).draws
    fresh = MCDropout(model, seed=0).draws(x, n_draws=8)
    assert not torch.allclose(before, after)
    assert torch.allclose(after, fresh, atol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m[2], "p", 0.6),
        lambda m: m.__setitem__(4, nn.ReLU()),
        lambda m: setattr(m[6], "weight", nn.Parameter(m[6].weight.detach() * 3)),
        lambda m: m[0].register_forward_hook(lambda _, __, out: out + 1.0),
    ],
)
def test_a_changed_model_takes_the_long_road(change):
    model, x = net(), inputs(1)[0]
    mc = warmed(model)
    change(model)
    assert not takes_short_road(mc, x)
    found = mc.regress(x, n_draws=8, precision=1.0).draws
    fresh = MCDropout(model, seed=0).draws(x, n_draws=8)
    assert torch.allclose(found, fresh, atol=1e-6)


def test_other_kinds_of_calls_take_the_long_road():
    mc, x = warmed(net()), inputs(1)[0]
    assert not takes_short_road(mc, x.double())
    assert not takes_short_road(mc, torch.randn(3, 2).T)
    assert not takes_short_road(mc, torch.cat([x, x]))
    assert not takes_short_road(mc, nn.Parameter(x))
    assert not takes_short_road(mc.independent(), x)
    assert mc._warm.session(mc._sampler, (), {"input": x}) is None
    with torch.autocast("cpu"):
        assert not takes_short_road(mc, x)


class Branches(nn.Module):
    """Goes another way for other inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(x)
        return y if x[0, 0] > 0 else -3.0 * y


def test_a_batch_that_goes_another_way_is_seen():
    model, x = Branches(), inputs(1, 1)[0].abs()
    mc = MCDropout(model, seed=0)
    for scale in (1.0, 2.0, 3.0, 4.0):
        mc.regress(scale * x, n_draws=20, precision=1.0)
    found = mc.regress(-x, n_draws=20, precision=1.0).draws
    fresh = MCDropout(like(model), seed=0).draws(-x, n_draws=20)
    assert torch.allclose(found, fresh, atol=1e-6)


def like(model: nn.Module) -> nn.Module:
    other = Branches()
    other.load_state_dict(model.state_dict())
    return other


def test_equal_rows_are_asked_about_as_ever():
    mc = warmed(net())
    x = torch.ones(2, 3)
    found = mc.regress(x, n_draws=20, precision=1.0).draws
    assert torch.allclose(found, MCDropout(net(), seed=0).draws(x, n_draws=20))


def test_nan_is_refused_on_the_short_road_too():
    mc = warmed(net())
    with pytest.raises(ParameterError, match="NaN"):
        mc.regress(torch.full((2, 3), torch.nan), n_draws=20, precision=1.0)


def test_readers_written_in_each_call_do_not_pile_up():
    mc = MCDropout(net(), seed=0)
    x, met = inputs(1)[0], []
    for n in range(200):
        reader = lambda out: out  # noqa: E731 - another function in each round
        met.append(weakref.ref(reader))
        found = mc.regress(x, n_draws=4, precision=1.0, output=reader)
        if n == 0:
            first = found.mean
    del reader, found
    gc.collect()
    assert torch.equal(mc.regress(x, n_draws=4, precision=1.0).mean, first)
    assert sum(ref() is not None for ref in met) < 100
