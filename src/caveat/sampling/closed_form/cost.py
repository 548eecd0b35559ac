"""Whether to integrate the last layer costs so little that nobody will notice."""

import math

from caveat.sampling.closed_form.last_layer import LastLayer
from caveat.sampling.rewriting.slicing import sliced_before
from caveat.sampling.tape import Tape
from caveat.sampling.work import PER_NUMBER, work_of

_LIMIT = 0.12  # of the work of a draw


def is_nearly_free(tape: Tape, layer: LastLayer) -> bool:
    """Whether closed forms for the last layer add next to nothing to a draw.

    They read all features twice and forbid to leave dropped units out of the layer
    that makes them (``rewriting/slicing.py``).
    """
    features = math.prod(tape.values[layer.features].shape)
    extra: float = features * (2 * PER_NUMBER + len(layer.weight))
    sliced = sliced_before(tape, layer.features)
    if sliced is not None:
        extra += _share_dropped(layer) * work_of(sliced, tape)
    return extra <= _LIMIT * sum(work_of(op, tape) for op in tape.ops)


def _share_dropped(layer: LastLayer) -> float:
    """Of the units; a mask of 0 and c with Pr(0) = f has Var m = f/(1-f) (E m)²."""
    square = layer.noise.mean.square()
    return float((layer.noise.spread / (layer.noise.spread + square)).mean())
