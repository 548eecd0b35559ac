"""Whether to integrate the last layer costs so little that nobody will notice."""

import math

import torch

from caveat.sampling.closed_form.last_layer import LastLayer
from caveat.sampling.rewriting.slicing import sliced_before
from caveat.sampling.tape import Op, Tape

_aten = torch.ops.aten
_LIMIT = 0.12  # of the work of a draw
_PER_NUMBER = 8  # multiplications in the time of reading and writing a number


def is_nearly_free(tape: Tape, layer: LastLayer) -> bool:
    """Whether closed forms for the last layer add next to nothing to a draw.

    They read all features twice and forbid to leave dropped units out of the layer
    that makes them (``rewriting/slicing.py``).
    """
    features = math.prod(tape.values[layer.features].shape)
    extra: float = features * (2 * _PER_NUMBER + len(layer.weight))
    sliced = sliced_before(tape, layer.features)
    if sliced is not None:
        extra += _share_dropped(layer) * _work(sliced, tape)
    return extra <= _LIMIT * sum(_work(op, tape) for op in tape.ops)


def _share_dropped(layer: LastLayer) -> float:
    """Of the units; a mask of 0 and c with Pr(0) = f has Var m = f/(1-f) (E m)²."""
    square = layer.noise.mean.square()
    return float((layer.noise.spread / (layer.noise.spread + square)).mean())


def _work(op: Op, tape: Tape) -> int:
    """Multiplications that an operation is worth."""
    results = sum(math.prod(tape.values[n].shape) for n in op.results if n is not None)
    each = _PER_NUMBER
    if op.func in _PRODUCTS and op.args[1].number in tape.constants:
        each += tape.constants[op.args[1].number][0].numel()
    return results * each


_PRODUCTS = frozenset(
    {
        _aten.linear.default,
        _aten.conv1d.default,
        _aten.conv2d.default,
        _aten.conv3d.default,
    }
)
