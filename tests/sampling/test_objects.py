"""Objects that a model changes: every pass starts from them as they were given."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import caveat
from caveat.sampling.trees import leaves_of, mapped
from tests.zoo.specimen import normal


class Slotted:
    __slots__ = ("inside", "unset")

    def __init__(self, inside: Any) -> None:
        self.inside = inside


@dataclass(frozen=True)
class Frozen:
    inside: Any


class Items(list[Any]):
    name = "mine"


@dataclass
class Memory:
    """What a model may keep from call to call."""

    seen: list[Tensor] = field(default_factory=list)
    total: Tensor | None = None
    calls: int = 0
    by_name: dict[str, Any] = field(default_factory=dict)


def plain(value: Any) -> Any:
    return mapped(value, lambda tensor: tensor)


@pytest.mark.parametrize("make", [Slotted, Frozen, Items, list, set, Memory])
def test_objects_are_new_and_tensors_the_same(make):
    x = torch.ones(2)
    made = make([x])
    copy = plain(made)
    assert type(copy) is make
    assert copy is not made
    assert [t is x for t in leaves_of(copy) if isinstance(t, Tensor)] == [True]


def test_a_change_of_the_copy_is_not_one_of_the_original():
    memory = Memory([torch.ones(2)], by_name=defaultdict(list, a=[torch.zeros(1)]))
    copy = plain(memory)
    copy.seen.append(1)
    copy.calls += 1
    copy.by_name["a"].append(2)
    copy.by_name["b"].append(3)
    assert (len(memory.seen), memory.calls, len(memory.by_name["a"])) == (1, 0, 1)
    assert "b" not in memory.by_name


def test_what_is_one_thing_stays_one_thing():
    inner = Memory()
    both = plain({"left": inner, "right": [inner]})
    assert both["left"] is both["right"][0]
    holds_itself = Memory()
    holds_itself.by_name["me"] = holds_itself
    copy = plain(holds_itself)
    assert copy.by_name["me"] is copy


def test_modules_functions_and_plain_values_are_shared():
    for value in (nn.Linear(1, 1), torch.relu, int, 3, "a", None, torch.float32):
        assert plain(value) is value


def test_what_cannot_be_copied_is_shared():
    steps = iter([1, 2])
    assert plain(steps) is steps


class Remembers(nn.Module):
    """Changes the memory that it is given, in every way."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        h = self.dropout(self.linear(x))
        assert memory.total is not None
        memory.total.add_(h)  # in place
        memory.seen.append(h)
        memory.calls += 1
        return memory.total + len(memory.seen), memory


def test_every_draw_starts_from_the_object_as_it_was():
    torch.manual_seed(0)
    model, x = Remembers(), normal(4, 3)
    memory = Memory([torch.zeros(1)], torch.ones(4, 4))
    version = memory.total._version
    mc = caveat.MCDropout(model, seed=3)
    with torch.no_grad():
        draws, _ = mc.draws(x, memory, n_draws=5)
        for t in (4, 0):
            total, after = mc.function(t)(x, memory)
            assert torch.equal(total, draws[t])
            assert torch.equal(after.total + 2, total)  # what was written is returned
            assert (len(after.seen), after.calls) == (2, 1)
    above, after = mc.function(4)(x, memory)
    torch.testing.assert_close(above, draws[4])
    torch.testing.assert_close(after.total + 2, above)
    assert above.requires_grad
    assert (len(memory.seen), memory.calls) == (1, 0)
    assert torch.equal(memory.total, torch.ones(4, 4))
    assert memory.total._version == version


def test_rows_inside_an_object_are_taken_with_the_batch():
    torch.manual_seed(0)
    model, x = Remembers(), normal(4, 3)
    memory = Memory([torch.zeros(1)], normal(4, 4, seed=1))
    mc = caveat.MCDropout(model, seed=3)
    whole, _ = mc.draws(x, memory, n_draws=3)
    pieces, _ = mc.draws(x, memory, n_draws=3, batch_size=3)
    torch.testing.assert_close(pieces, whole)


class AddsInPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor, buffers: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        h = torch.dropout(self.linear(x), 0.5, self.training)
        buffers[0].add_(h)
        return h, buffers


def test_a_tensor_that_was_written_is_returned_as_written():
    torch.manual_seed(0)
    mine = [torch.zeros(2, 3)]
    h, (written,) = caveat.MCDropout(AddsInPlace(), seed=0).draws(
        normal(2, 3), mine, n_draws=4
    )
    assert torch.equal(h, written)
    assert not mine[0].any()


@pytest.mark.parametrize("gradients", [False, True])
def test_a_written_tensor_of_the_user_stays_as_it_was(gradients):
    torch.manual_seed(0)
    mine, x = [torch.zeros(2, 3)], normal(2, 3).requires_grad_()
    draw = caveat.MCDropout(AddsInPlace(), seed=0).function(2)
    with torch.set_grad_enabled(gradients):
        h, (written,) = draw(x, mine)
    assert torch.equal(h, written)
    assert not mine[0].any()
    assert (mine[0]._version, mine[0].requires_grad) == (0, False)
    if gradients:
        (slope,) = torch.autograd.grad(written.sum(), x)
        assert slope.any()
