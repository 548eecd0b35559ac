"""Who makes and who uses each value of a tape."""

from collections import Counter, defaultdict

import torch

from caveat.sampling.noise import Mask, NoiseSpec
from caveat.sampling.tape import Op, Ref, Tape


class Uses:
    """A look at a tape as it is now; make a new one after a change."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self.producer: dict[int, Op] = {}
        self.consumers: dict[int, list[Op]] = defaultdict(list)
        for op in tape.ops:
            for number in op.results:
                if number is not None:
                    self.producer[number] = op
            for number in set(op.reads()):
                self.consumers[number].append(op)
        self.outputs = {r.number for r in tape.outputs if isinstance(r, Ref)}
        seen = {*self.producer, *self.consumers, *self.outputs}
        self._in_group = Counter(tape.values[n].group for n in seen)
        self._written = {n for op in tape.ops for n in op.writes}

    def is_private(self, number: int) -> bool:
        """Made by an operation, in memory that no other value shares, never written."""
        return (
            number in self.producer
            and self._in_group[self._tape.values[number].group] == 1
            and number not in self._written
        )

    def group_size(self, group: int) -> int:
        """How many values share this memory."""
        return self._in_group[group]

    def only_consumer(self, number: int) -> Op | None:
        """The one operation that uses a private value, if no other does."""
        users = self.consumers[number]
        if self.is_private(number) and len(users) == 1 and number not in self.outputs:
            return users[0]
        return None


def masked(op: Op, tape: Tape) -> tuple[int, int, NoiseSpec] | None:
    """(x, mask, its spec) if ``op`` multiplies a value with a dropout mask."""
    if op.func is not torch.ops.aten.mul.Tensor or len(op.args) != 2:
        return None
    left, right = op.args
    if not (isinstance(left, Ref) and isinstance(right, Ref)):
        return None
    spec = tape.noises.get(right.number)
    if not isinstance(spec, NoiseSpec) or not isinstance(spec.law, Mask):
        return None
    return left.number, right.number, spec


def over_last_axis(spec: NoiseSpec) -> bool:
    """Whether a mask differs along the last axis only."""
    return bool(spec.shape) and spec.numel == spec.shape[-1]


def linear_arguments(op: Op, tape: Tape) -> tuple[int, int, int | None] | None:
    """(input, weight, bias) if ``op`` is a linear layer with constant weights."""
    if op.func is not torch.ops.aten.linear.default:
        return None
    x, weight, *rest = op.args
    bias = rest[0] if rest else None
    if weight.number not in tape.constants:
        return None
    if bias is not None and bias.number not in tape.constants:
        return None
    return x.number, weight.number, None if bias is None else bias.number
