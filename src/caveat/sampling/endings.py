"""Noise on features, then a linear layer, then the output: the usual end of a network.

This is found on the tape alone. What follows from it is in ``closed_form/``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from caveat._torch import op_name
from caveat.sampling.rewriting.uses import Uses, linear_arguments
from caveat.sampling.tape import Op, Ref, Tape

_aten = torch.ops.aten

# The same elements, seen in another shape.
_VIEWS = frozenset(
    """
    view reshape flatten unflatten squeeze unsqueeze permute transpose t expand clone
    contiguous alias detach
    """.split()
)

# With one argument that depends on noise: a factor and a term for each element.
ARITHMETIC = frozenset(
    {
        _aten.mul.Tensor,
        _aten.mul.Scalar,
        _aten.div.Tensor,
        _aten.div.Scalar,
        _aten.add.Tensor,
        _aten.add.Scalar,
        _aten.sub.Tensor,
        _aten.sub.Scalar,
        _aten.rsub.Tensor,
        _aten.rsub.Scalar,
        _aten.neg.default,
    }
)


class Product(NamedTuple):
    """``features * chain(noise)``, as numbers of values and the operations between."""

    features: int
    noise: int
    chain: tuple[Op, ...]


@dataclass(frozen=True)
class Ending:
    """The end of a tape: ``after(linear(before(features * noise), weight, bias))``.

    Attributes
    ----------
    tape : Tape
        Without writes.
    output : int
        The value that it ends in.
    linear : Op
        The linear layer; its weight and bias are constants.
    before, after : tuple of Op
        What stands before and after it.
    products : tuple of Product
        The product at its start, read in each order in which one factor is noise.
    """

    tape: Tape
    output: int
    linear: Op
    before: tuple[Op, ...]
    after: tuple[Op, ...]
    products: tuple[Product, ...]


def find_ending(tape: Tape, output: int) -> Ending | None:
    """The end of a tape (without writes), if it is of this form."""
    if any(op.writes for op in tape.ops):
        return None  # values may share memory: not worth the trouble
    uses = Uses(tape)
    after, number = _back(tape, uses, output, _is_affine)
    linear = uses.producer.get(number)
    found = None if linear is None else linear_arguments(linear, tape)
    if linear is None or found is None:
        return None
    before, number = _back(tape, uses, found[0], lambda op: is_view(op.func))
    product = uses.producer.get(number)
    if product is None or not _used_once(uses, number):
        return None
    products = tuple(_products(tape, uses, product))
    return Ending(tape, output, linear, before, after, products) if products else None


def is_view(func: Any) -> bool:
    """Whether an operation gives the same elements in another shape."""
    return op_name(func) in _VIEWS


def _is_affine(op: Op) -> bool:
    return is_view(op.func) or op.func in ARITHMETIC


def _back(
    tape: Tape, uses: Uses, number: int, passes: Callable[[Op], bool]
) -> tuple[tuple[Op, ...], int]:
    """Operations between an earlier value and ``number``, and that value."""
    ops: list[Op] = []
    while True:
        op = uses.producer.get(number)
        if op is None or not passes(op) or len(op.results) != 1 or op.writes:
            return tuple(ops[::-1]), number
        sources = [n for n in op.reads() if n not in tape.constants]
        if len(sources) != 1 or sources[0] in tape.noises:
            return tuple(ops[::-1]), number
        if not _used_once(uses, sources[0]):
            return tuple(ops[::-1]), number
        ops.append(op)
        number = sources[0]


def _used_once(uses: Uses, number: int) -> bool:
    return len(uses.consumers[number]) == 1 and number not in uses.outputs


def _products(tape: Tape, uses: Uses, product: Op) -> Iterator[Product]:
    if product.func is not _aten.mul.Tensor:
        return
    for features, factor in (product.args, product.args[::-1]):
        if not isinstance(features, Ref) or not isinstance(factor, Ref):
            continue
        chain, noise = _noise_chain(tape, uses, factor.number)
        if noise is not None and _used_once(uses, noise):
            yield Product(features.number, noise, chain)


def _noise_chain(
    tape: Tape, uses: Uses, number: int
) -> tuple[tuple[Op, ...], int | None]:
    """The operations that make ``number`` of a noise that is used nowhere else."""
    ops: list[Op] = []
    while number not in tape.noises:
        op = uses.producer.get(number)
        if op is None or not _is_affine(op) or op.writes:
            return (), None
        sources = [n for n in op.reads() if n not in tape.constants]
        if len(sources) != 1 or not _used_once(uses, number):
            return (), None
        ops.append(op)
        number = sources[0]
    return tuple(ops[::-1]), number
