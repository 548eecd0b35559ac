"""Each rewrite fires on its pattern and changes nothing but the speed."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import caveat
from caveat.sampling.engine import Sampler
from caveat.sampling.inputs import Batch
from caveat.sampling.passes import DrawOmega
from caveat.sampling.plans import plan_for
from caveat.sampling.program import Program
from caveat.sampling.rewriting import optimised
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
