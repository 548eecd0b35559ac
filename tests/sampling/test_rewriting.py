"""Each rewrite fires on its pattern and changes nothing but the speed."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import caveat
from caveat.sampling import replay
from caveat.sampling.engine import Sampler
from caveat.sampling.inputs import Batch
from caveat.sampling.passes import DrawOmega
from caveat.sampling.plans import plan_for
from caveat.sampling.program import Program
from caveat.sampling.rewriting import draws_together, optimised, without_writes
from caveat.sampling.running import run_pass
from caveat.sampling.templates import template_of

DRAWS = range(1, 8)


class Residual(nn.Module):
    """A mask whose product is used twice must not be folded away."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 64), nn.Linear(64, 64)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        h = self.drop(torch.relu(self.first(x)))
        return h + self.second(h)


class ReadTwice(nn.Module):
    """The activation before the mask is needed again, so units must not be cut."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 256), nn.Linear(256, 256)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        h = torch.relu(self.first(self.drop(x)))
        return self.second(self.drop(h)) + h


def deep(rate, width=256, activation=nn.ReLU, **options):
    return nn.Sequential(
        nn.Linear(3, width),
        activation(**options),
        nn.Dropout(rate),
        nn.Linear(width, width),
        activation(**options),
        nn.Dropout(rate),
        nn.Linear(width, 2),
    )


def conv(drop):
    return nn.Sequential(
        nn.Conv2d(1, 6, 3),
        nn.ReLU(),
        drop,
        nn.Conv2d(6, 8, 3),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(8 * 16, 3),
    )


CASES = {
    "head": (
        nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3)),
        (40, 4),
        "linear",  # the layer leaves the replay: all draws in one product
        False,
    ),
    "head with few rows": (
        nn.Sequential(nn.Linear(4, 32), nn.Dropout(0.5), nn.Linear(32, 7, bias=False)),
        (2, 4),
        "linear",
        False,
    ),
    "slices units": (deep(0.5), (400, 3), "kept_units", True),
    "slices through inplace relu": (
        deep(0.3, inplace=True),
        (400, 3),
        "kept_units",
        True,
    ),
    "low rates are not sliced": (deep(0.01), (400, 3), "kept_units", False),
    "folds into weights": (deep(0.3, width=20), (40, 3), "mul_Tensor", True),
    "memory is reused": (deep(0.3, width=20), (40, 3), "relu_", True),
    "products used twice stay": (Residual(), (5, 4), "kept_units", False),
    "activations used twice stay": (ReadTwice(), (5, 4), "kept_units", False),
    "channels last": (conv(nn.Dropout(0.3)), (9, 1, 12, 12), "contiguous", True),
    "channels folded": (conv(nn.Dropout2d(0.3)), (9, 1, 12, 12), "conv2d", True),
}


def bound(tape):
    return Program(tape, frozenset()).bound({})


def recorded(model, x):
    sampler = Sampler(model, 5, True)
    batch = Batch.of((x,), {}, axis=0)
    plan = plan_for(model, batch)
    omega = DrawOmega(5, 0, plan.layouts, batch.rows)
    output, run = run_pass(model, batch, omega, plan.switches, record=True)
    template, constants = template_of(run.recorder, [output], None, batch)
    return sampler, batch, template.tape(constants)


@pytest.mark.parametrize("name", CASES)
def test_rewritten_tape_gives_the_same_draws(name):
    model, shape, word, present = CASES[name]
    torch.manual_seed(0)
    x = torch.randn(shape)
    sampler, batch, tape = recorded(model, x)
    plain, fast = bound(tape), bound(optimised(tape))
    assert (word in fast.source) is present
    with torch.no_grad():
        for (left,), (right,) in zip(
            plain.outputs(5, DRAWS), fast.outputs(5, DRAWS), strict=True
        ):
            torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)
        for draw, (right,) in zip(DRAWS, fast.outputs(5, DRAWS), strict=True):
            again = sampler.one_pass(batch, draw, above_autograd=False)
            torch.testing.assert_close(again, right, rtol=1e-4, atol=1e-5)


def test_optimising_leaves_the_tape_as_it_was():
    _, _, tape = recorded(deep(0.5), torch.randn(6, 3))
    before = bound(tape).source
    optimised(tape)
    assert bound(tape).source == before


class Branches(nn.Module):
    """What hangs on the mask of the inputs is read in two places."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 40), nn.Linear(40, 2)

    def forward(self, x):
        x = F.dropout(x, 0.05)
        h = torch.relu_(self.first(x))
        return self.last(F.dropout(h, 0.2)) + x[:, :2]


def on_inputs(rate, *layers):
    return nn.Sequential(nn.Dropout(rate), nn.Linear(6, 40), nn.ReLU(), *layers)


LATER = (nn.Dropout(0.2), nn.Linear(40, 2))
STARTS = {
    "a first layer": (on_inputs(0.05, *LATER), True),
    "the whole network": (on_inputs(0.05, nn.Linear(40, 2)), True),
    "no layer between": (on_inputs(0.05, nn.Hardswish(inplace=True), *LATER), True),
    "in place on what is kept": (
        nn.Sequential(
            nn.Dropout(0.05), nn.Linear(6, 40), nn.Dropout(0.2), nn.ReLU(inplace=True)
        ),
        True,
    ),
    "dropped too often": (on_inputs(0.3, *LATER), False),
    "two ends": (Branches(), False),
}


@pytest.mark.parametrize("name", STARTS)
def test_starts_are_shared_by_draws_that_drop_nothing(name):
    model, shared = STARTS[name]
    torch.manual_seed(0)
    _, _, tape = recorded(model, torch.randn(3000, 6))
    plain, fast = bound(tape), bound(optimised(tape))
    assert ("start_" in fast.source) is shared
    whole = next(iter(tape.noises.values())).sample(5, range(40)).flatten(1).all(1)
    assert 0 < int(whole.sum()) < 40  # both kinds of draws are met
    for _ in range(2):  # what is kept is as it was
        pairs = zip(
            plain.outputs(5, range(40)), fast.outputs(5, range(40)), strict=True
        )
        for (left,), (right,) in pairs:
            torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)


def test_starts_are_those_of_the_batch():
    torch.manual_seed(0)
    model = on_inputs(0.05, *LATER).eval()
    mc = caveat.MCDropout(model, seed=1, analytic=False)
    for _ in range(4):  # recorded, compared, replayed, replayed
        x = torch.randn(3000, 6)
        found = mc.draws(x, n_draws=12)
        for draw in range(12):
            torch.testing.assert_close(
                found[draw], mc.function(draw)(x).detach(), rtol=1e-4, atol=1e-5
            )
    with torch.no_grad():
        model[1].weight.mul_(2.0)
    torch.testing.assert_close(
        mc.draws(x, n_draws=1)[0], mc.function(0)(x).detach(), rtol=1e-4, atol=1e-5
    )


class BehindAMask(nn.Module):
    """A function of what comes behind a mask."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 2)

    def forward(self, x):
        return self.last(self.function(F.dropout(self.first(x), 0.4)))


def scaled_view(h):
    view = h.view(-1)
    view.mul_(3.0)
    return view.view(h.shape)


def scaled_base(h):
    h.view(-1).mul_(3.0)
    return h


def base_after_a_view(h):
    view = h.t()
    h.mul_(3.0)
    return h + view.t()


def view_of_a_write(h):
    h.mul_(3.0)
    view = h[:, :3]
    view.add_(1.0)
    return h


def two_writes(h):
    view = h.view(-1)
    view.mul_(3.0)
    view.add_(1.0)
    return view.view(h.shape).tanh()


def twice_over(h):
    view = h.view(-1)
    view.mul_(h.reshape(-1))
    return view.view(h.shape)


def read_as_it_is(h):
    view = h.view(-1)
    view.mul_(3.0)
    return (view + 0.5).view(h.shape)


def filled(h):
    blank = torch.empty_like(h)
    blank.copy_(h)
    return blank.mul_(2.0)


def half_filled(h):
    blank = torch.zeros_like(h)
    blank[:, :3].copy_(h[:, :3])
    return blank


WRITES = {  # and whether all of them can go
    scaled_view: False,  # the last view is made of the one that is written
    scaled_base: False,
    base_after_a_view: False,
    view_of_a_write: False,
    two_writes: False,
    twice_over: False,
    read_as_it_is: True,
    filled: True,
    half_filled: False,
}


@pytest.mark.parametrize("function", WRITES, ids=lambda f: f.__name__)
def test_writes_go_only_where_nobody_would_see_them(function):
    torch.manual_seed(0)
    _, _, tape = recorded(BehindAMask(function), torch.randn(5, 4))
    free = tape.copy()
    without_writes(free)
    free.drop_dead()
    assert (not any(op.writes for op in free.ops)) is WRITES[function]
    runs = (bound(each).outputs(5, DRAWS) for each in (tape, free))
    pairs = zip(*runs, strict=True)
    for (left,), (right,) in pairs:
        torch.testing.assert_close(left, right)


class Slope(nn.Module):
    """Autograd in the forward: masks are made in memory of their own."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(4, 16), nn.Tanh(), nn.Dropout(0.3), nn.Linear(16, 1)
        )

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(self.net(x).sum(), x)[0]


def test_draws_with_autograd_inside_are_computed_together(monkeypatch):
    made = []
    kept = lambda tape: made.append(draws_together(tape)) or made[-1]  # noqa: E731
    monkeypatch.setattr(replay, "draws_together", kept)
    torch.manual_seed(0)
    model, x = Slope().eval(), torch.randn(2, 4)
    mc = caveat.MCDropout(model, seed=1)
    for _ in range(3):  # recorded, compared, replayed
        found = mc.draws(x, n_draws=12)
    with caveat.stochastic(model, seed=1):
        expected = torch.stack([model(x).detach() for _ in range(12)])
    assert made and all(tape is not None for tape in made)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
