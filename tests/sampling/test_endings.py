"""Tapes that end in noise and a linear layer, and tapes that do not."""

import pytest
import torch
from torch import nn

from caveat import MCDropout
from caveat.sampling import endings
from caveat.sampling.closed_form.rules import ARITHMETIC
from caveat.sampling.inputs import Batch
from caveat.sampling.rewriting import without_writes


def ending(model: nn.Module) -> endings.Ending | None:
    batch = Batch.of((torch.linspace(-1, 1, 12).view(3, 4),), {}, axis=0, model=model)
    tape = MCDropout(model, seed=0)._sampler.session(batch).tape.copy()
    without_writes(tape)
    return endings.find_ending(tape, tape.outputs[0].number)


class Function(nn.Module):
    """A linear layer, and anything around it."""

    def __init__(self, function):
        super().__init__()
        self.drop, self.layer = nn.Dropout(0.5), nn.Linear(4, 4)
        self.function = function

    def forward(self, x):
        return self.function(self, x)


WITH = {
    "head": lambda m, x: m.layer(m.drop(x)),
    "after": lambda m, x: (2 * m.layer(m.drop(x)) + 1).unflatten(-1, (2, 2)),
    "before": lambda m, x: m.layer(m.drop(x.view(-1, 2, 2)).flatten(1)),
    "earlier noise": lambda m, x: m.layer(m.drop(m.layer(m.drop(x)).tanh())),
    "noise first": lambda m, x: m.layer((1 + torch.randn(4)) * x),
}
WITHOUT = {
    "bent": lambda m, x: m.layer(m.drop(x)).tanh(),
    "no noise at the end": lambda m, x: m.layer(m.drop(x).tanh()),
    "used twice": lambda m, x: m.layer(y := m.drop(x)) + y,
    "not linear": lambda m, x: m.drop(m.layer(x)),
    "drawn weights": lambda m, x: x @ m.drop(m.layer.weight),
}


@pytest.mark.parametrize("function", WITH.values(), ids=WITH)
def test_the_usual_end_is_found(function):
    found = ending(Function(function))
    assert found.linear.func is torch.ops.aten.linear.default
    (product,) = found.products
    assert product.noise in found.tape.noises
    assert found.tape.values[product.features].shape[-1] in (2, 4)


@pytest.mark.parametrize("function", WITHOUT.values(), ids=WITHOUT)
def test_other_ends_are_not(function):
    assert ending(Function(function)) is None


def test_arithmetic_is_what_there_are_rules_for():
    assert set(ARITHMETIC) == endings.ARITHMETIC


def test_nothing_closed_is_walked_through_in_vain(monkeypatch):
    """Neither by classify, nor by regress where there is no closed form."""

    def never(*args, **kwargs):
        raise AssertionError("a closed form was asked for")

    monkeypatch.setattr("caveat.sampling.closed_form.readings.closed_reading", never)
    monkeypatch.setattr("caveat.sampling.closed_form.readings.improved", never)
    x = torch.ones(2, 4)
    head, bent = Function(WITH["head"]), Function(WITHOUT["bent"])
    MCDropout(head).classify(x, n_draws=3)
    MCDropout(bent).regress(x, n_draws=3, precision=1.0)
    with pytest.raises(AssertionError, match="closed form"):
        MCDropout(head).regress(x, n_draws=3, precision=1.0)
