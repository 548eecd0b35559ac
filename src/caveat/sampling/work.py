"""How much work the operations of a tape are, in multiplications."""

import math

from caveat._torch import op_name
from caveat.sampling.tape import Op, Ref, Tape

PER_NUMBER = 8  # multiplications in the time of reading and writing a number
OPERATION = 40_000  # in the time that an operation takes to start

_BY_WEIGHT = frozenset(("linear", "conv1d", "conv2d", "conv3d", "thnn_conv2d"))
_PRODUCTS = frozenset(("matmul", "mm", "bmm"))
_RECURRENT = frozenset(("lstm", "gru", "rnn_tanh", "rnn_relu"))


def work_of(op: Op, tape: Tape) -> float:
    """Multiplications that an operation is worth."""
    made = [tape.values[n].shape for n in op.results if n is not None]
    results = sum(abs(math.prod(shape)) for shape in made)
    name = op_name(op.func)
    if name in _BY_WEIGHT:
        weight = tape.values[op.args[1].number].shape
        return float(results * (PER_NUMBER + abs(math.prod(weight[1:]))))
    if name in _PRODUCTS:
        return float(results * (PER_NUMBER + tape.values[op.args[0].number].shape[-1]))
    if name in _RECURRENT and made:
        return 8.0 * results * made[0][-1]
    return float(results * PER_NUMBER)


def starts_of(op: Op, tape: Tape) -> int:
    """Operations that are started in turn: recurrent layers start some a step."""
    if op_name(op.func) not in _RECURRENT or op.results[0] is None:
        return 1
    shape = tape.values[op.results[0]].shape
    packed = len(shape) < 3
    return 1 + (shape[0] if packed or op.args[-1] is not True else shape[1])


def held_by(tape: Tape) -> int:
    """Numbers that all values of a draw hold, if none were let go."""
    made = [n for op in tape.ops for n in op.results if n is not None]
    return sum(abs(math.prod(tape.values[n].shape)) for n in (*made, *tape.noises))


def returned_by(tape: Tape) -> int:
    """Numbers that the outputs of a draw hold; at least 1."""
    made = {out.number for out in tape.outputs if isinstance(out, Ref)}
    return max(1, sum(abs(math.prod(tape.values[n].shape)) for n in made))
