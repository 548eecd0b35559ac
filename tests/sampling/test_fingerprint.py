"""Equal as long as a model, and what it is reading, is what it was."""

import argparse
import functools
import gc
import random
import types
import weakref
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caveat.sampling.fingerprint import fingerprint, survey, tensors_of

RATE = 0.5
TABLE = {"rates": [0.1, 0.2]}


class Settings:
    rate = 0.5


@dataclass
class Part:
    rates: list[float] = field(default_factory=lambda: [0.1, 0.2])


@dataclass
class Config:
    rate: float = 0.1
    part: Part = field(default_factory=Part)


@dataclass(slots=True)
class Slots:
    rate: float = 0.1


class Pair(NamedTuple):
    rate: float
    config: Config


def helper(x, rate=0.1):
    return F.dropout(x, RATE * Settings.rate * rate)


def closing_over(rate):
    def drop(x):
        return F.dropout(x, rate[0])

    return drop


class Odd(nn.Module):
    """Parts and switches in places of all kinds."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1))
        self.rate, self.rates, self.named = -1, [0.1, (0.2,)], {"a": 0.3}
        self.hidden = [nn.Dropout(0.5)]
        self.function = F.relu
        self.me = [self]  # a circle
        self.inner[1].register_forward_pre_hook(self.inner[1].forward)  # a short one
        self.last = torch.zeros(2)
        self.config, self.slots = Config(), Slots()
        self.pair = Pair(0.1, Config())
        self.space = types.SimpleNamespace(rate=0.1)
        self.options = argparse.Namespace(rates={"a": 0.1})
        self.closed, self.held = closing_over(self.rates), [0.2]
        self.partial = functools.partial(F.dropout, p=0.1)
        self.kind = torch.float32

    level = 1

    def method(self, x):
        return x

    def forward(self, x):
        return helper(self.scaled(x)) * TABLE["rates"][0]

    def scaled(self, x):
        return x * self.level


def set_hook(model):
    model.inner[0].register_forward_hook(lambda module, args, output: output)


CHANGES = {
    "rate": lambda m: setattr(m.inner[1], "p", 0.2),
    "number": lambda m: setattr(m, "rate", -2),  # hashes as -1 does
    "list": lambda m: m.rates.append(0.1),
    "tuple": lambda m: m.rates.__setitem__(1, (0.3,)),
    "dict": lambda m: m.named.update(a=0.4),
    "key": lambda m: m.named.update(b=m.named.pop("a")),
    "part": lambda m: m.inner.__setitem__(1, nn.AlphaDropout(0.1)),
    "new part": lambda m: m.inner.append(nn.Identity()),
    "hidden part": lambda m: setattr(m.hidden[0], "p", 0.6),
    "function": lambda m: setattr(m, "function", F.dropout),
    "method": lambda m: setattr(m, "forward", m.method),
    "new attribute": lambda m: setattr(m, "new", True),
    "hook": set_hook,
    "dataclass": lambda m: setattr(m.config, "rate", 0.2),
    "list in a dataclass in a dataclass": lambda m: m.config.part.rates.append(0.3),
    "slots": lambda m: setattr(m.slots, "rate", 0.2),
    "named tuple": lambda m: setattr(m.pair.config, "rate", 0.2),
    "namespace": lambda m: setattr(m.space, "rate", 0.2),
    "dict in a namespace": lambda m: m.options.rates.update(a=0.2),
    "another object": lambda m: setattr(m, "config", Config(0.3)),
    "closure": lambda m: setattr(m, "closed", closing_over(0.5)),
    "partial": lambda m: m.partial.keywords.update(p=0.2),
    "type": lambda m: setattr(m, "kind", torch.float64),
    "tensor": lambda m: setattr(m, "last", torch.zeros(2)),
    "renamed": lambda m: setattr(m, "other", m.__dict__.pop("rate")),
    "class attribute of the instance": lambda m: setattr(m, "level", 2),
}


WIDER = {
    "global": lambda patch: patch.setitem(globals(), "RATE", 0.6),
    "list in a global": lambda patch: patch.setitem(TABLE, "rates", [0.3]),
    "attribute of a class": lambda patch: patch.setattr(Settings, "rate", 0.6),
    "attribute of the model's class": lambda patch: patch.setattr(Odd, "level", 2),
    "default": lambda patch: patch.setattr(helper, "__defaults__", (0.2,)),
    "function": lambda patch: patch.setitem(globals(), "helper", F.dropout),
    "method": lambda patch: patch.setattr(Odd, "forward", Odd.method),
    "method of a method": lambda patch: patch.setattr(Odd, "scaled", Odd.method),
}


@pytest.mark.parametrize("change", WIDER.values(), ids=WIDER)
def test_changes_around_the_model_are_seen(change, monkeypatch):
    model = Odd()
    before = fingerprint(model)
    change(monkeypatch)
    assert fingerprint(model) != before
    monkeypatch.undo()
    assert fingerprint(model) == before


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_are_seen(change):
    model = Odd()
    before = fingerprint(model)
    assert fingerprint(model) == before
    change(model)
    assert fingerprint(model) != before


def test_what_does_not_matter():
    model = Odd().eval()
    before = fingerprint(model)
    model.train()
    model.double()
    with torch.no_grad():
        model.inner[0].weight.zero_()
    assert fingerprint(model) == before


def test_it_holds_no_part_of_the_model():
    model = Odd()
    model.forward = model.method
    kept, gone = fingerprint(model), weakref.ref(model)
    del model
    gc.collect()
    assert kept and gone() is None


def test_functions_do_not_keep_what_they_close_over():
    held = nn.Linear(2, 2)
    model = nn.Sequential(nn.Linear(2, 2))
    model.closed = closing_over([held])
    kept, gone = fingerprint(model), weakref.ref(held)
    del model, held
    gc.collect()
    assert kept and gone() is None


def test_large_objects_are_not_read_to_their_end():
    model = Odd()
    model.words = [{str(i): [i]} for i in range(100_000)]
    assert len(fingerprint(model)) < 1000


def test_tensors():
    model = Odd()
    found = {id(t) for t in tensors_of(model)}
    assert {id(t) for t in (*model.parameters(), *model.buffers())} <= found
    assert id(model.last) in found


def test_generators_and_seeds():
    class Seeded(Odd):
        def __init__(self):
            super().__init__()
            self.own = {"a": random.Random(0), "b": np.random.default_rng(0)}
            self.config.generator = torch.Generator()

        def forward(self, x):
            return self.drawn(x)

        def drawn(self, x):
            torch.manual_seed(0)
            return x

    model = Seeded()
    assert {type(g) for g in survey(model).generators} == {
        random.Random,
        np.random.Generator,
        torch.Generator,
    }
    assert survey(model).seeds
    assert not survey(Odd()).seeds
