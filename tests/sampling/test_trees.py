"""Objects are opened, and put together again as new ones of their class."""

from collections import OrderedDict, UserDict
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

from caveat.sampling.trees import flatten, leaves_of, stackable, unflatten

Y, Z = torch.zeros(2, 3), torch.ones(2, 3)


@dataclass
class Plain:
    logits: Tensor
    more: Any = None


@dataclass(frozen=True)
class Frozen:
    logits: Tensor
    more: Any = None


@dataclass(slots=True)
class Slotted:
    logits: Tensor
    more: Any = None


class Pair(NamedTuple):
    logits: Tensor
    more: Any = None


class OwnDict(dict):
    pass


class OwnOrdered(OrderedDict):
    pass


class OwnList(list):
    pass


class OwnTuple(tuple):
    pass


class Attributes:
    """As a class made by attrs is: pure Python, with or without slots."""

    __slots__ = ("logits", "more", "unset")

    def __init__(self, logits, more=None):
        self.logits, self.more = logits, more


VALUES = {
    "plain": Plain(Y, Z),
    "frozen": Frozen(Y, [Z, "text"]),
    "slotted": Slotted(Y, {"z": Z}),
    "nested": Plain(Y, Frozen(Z, Slotted(Y, Pair(Z)))),
    "named tuple": Pair(Y, Plain(Z)),
    "dict": OwnDict(y=Y, z=Plain(Z)),
    "ordered": OwnOrdered(b=Y, a=Z),
    "list": OwnList([Y, Z]),
    "tuple": OwnTuple((Y, Z)),
    "user dict": UserDict(y=Y, z=Z),
    "namespace": SimpleNamespace(y=Y, z=Z),
    "slots": Attributes(Y, Z),
    "packed": pack_sequence([torch.ones(3), torch.zeros(2)]),
    "distribution": torch.distributions.Normal(Y, Z),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_tensors_are_found_and_replaced(value):
    leaves, structure = flatten(value)
    found = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    assert len(found) >= 2
    assert structure.n_leaves == len(leaves)
    doubled = [2 * v if isinstance(v, Tensor) else v for v in leaves]
    again = unflatten(doubled, structure)
    assert type(again) is type(value)
    assert again is not value
    for left, right in zip(leaves_of(again), leaves, strict=True):
        expected = 2 * right if isinstance(right, Tensor) else right
        same = torch.equal(left, expected) if isinstance(left, Tensor) else True
        assert same and type(left) is type(right)
    assert flatten(again)[1].key == structure.key


def test_what_is_put_together_is_new_at_every_level():
    value = {"a": [Plain(Y, {"deep": [1]})]}
    again = unflatten(*flatten(value))
    again["a"][0].more["deep"].append(2)
    again["a"][0].logits = Z
    again["a"].append(3)
    assert value["a"][0].more == {"deep": [1]}
    assert value["a"][0].logits is Y
    assert len(value["a"]) == 1


def test_what_stays_closed():
    for value in (
        nn.Linear(1, 1),
        torch.float32,
        len,
        Plain,
        frozenset([1]),
        torch.Size([2]),
    ):
        assert leaves_of(value) == [value]


def test_a_circle_ends():
    value = SimpleNamespace(y=Y)
    value.me = value
    leaves, structure = flatten(value)
    assert leaves == [Y]
    again = unflatten(leaves, structure)
    assert again.me is again is not value


def test_kinds_differ_in_their_keys():
    keys = {repr(flatten(v)[1].key) for v in VALUES.values()}
    assert len(keys) == len(VALUES)


def test_default_fields_that_cannot_be_made_alone():
    @dataclass
    class Derived:
        logits: Tensor
        total: Tensor = field(init=False)

        def __post_init__(self):
            self.total = self.logits.sum()

    leaves, structure = flatten(Derived(Z))
    assert len(leaves) == 2
    assert unflatten(leaves, structure).total == 6


def test_objects_whose_numbers_belong_to_shapes_are_not_stacked():
    def stacked(value):
        return stackable(*flatten(value))

    assert stacked(Plain(Y, 3)) == [True, False]
    assert stacked(SimpleNamespace(y=Y, n=3)) == [True, False]
    assert stacked(Attributes(Y, "name")) == [True, False]
    assert stacked((Y, Attributes(Y, 3))) == [True, False, False]
    assert not any(stacked(torch.distributions.Normal(Y, Z)))
