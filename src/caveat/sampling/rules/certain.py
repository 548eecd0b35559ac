"""Comparisons of a drawn number with a bound that it cannot cross.

``torch.rand([]) < 0.0`` is False in every draw. Such an outcome does not count as
drawn, so Python may act on it: some models skip a layer ``if torch.rand([]) < rate``,
even when the rate is 0.

A comparison is monotone in the number, so it is certain if it has the same outcome at
both ends of the support. Torch itself compares the ends, in the type of the number.
"""

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from caveat._torch import OpOverload
from caveat.sampling.noise import Exponential, Integers, Law, Uniform
from caveat.sampling.passes import Pass
from caveat.sampling.raw import Raw

_aten = torch.ops.aten

# Largest values of a number drawn from [0, 1), ours and torch's own.
_BELOW_ONE = {torch.float32: 1 - 2**-24, torch.float64: 1 - 2**-53}


def _compare(run: Pass, func: OpOverload, left: Any, right: Any) -> Any:
    recorder = run.recorder
    raws = recorder.raw.on(left), recorder.raw.on(right)
    if raws == (None, None):
        return recorder.run(func, left, right)
    if _is_certain(run, func, (left, right), raws):
        # A bound in a tensor may be another one in the next call, which no plan would
        # notice: then the site counts, although nothing of it is drawn now.
        given = isinstance(left, Tensor) and isinstance(right, Tensor)
        for raw in filter(None, raws):
            raw.compared, raw.used = True, raw.used or given
        return recorder.run_clean(func, left, right)
    return recorder.run(func, left, right)


def _is_certain(
    run: Pass,
    func: OpOverload,
    sides: tuple[Any, Any],
    raws: tuple[Raw | None, Raw | None],
) -> bool:
    left, right = sides
    if raws[0] is not None and raws[1] is None and _is_one_number(run, right):
        ends = _ends(raws[0].law, left)
        return ends is not None and _agree(run, func, [(end, right) for end in ends])
    if raws[1] is not None and raws[0] is None and _is_one_number(run, left):
        ends = _ends(raws[1].law, right)
        return ends is not None and _agree(run, func, [(left, end) for end in ends])
    return False


def _is_one_number(run: Pass, bound: Any) -> bool:
    """Bounds with more numbers are left alone: they mostly depend on the input."""
    if not isinstance(bound, Tensor):
        return True
    one = bound.numel() == 1 or (bound.numel() > 0 and not any(bound.stride()))
    return one and not run.recorder.is_noisy(bound)


def _agree(run: Pass, func: OpOverload, pairs: list[tuple[Any, Any]]) -> bool:
    given = all(isinstance(side, Tensor) for side in pairs[0])
    # A tensor may be derived from the input: the recorder must see that it is read.
    with run.recorder if given else nullcontext():
        # Each outcome is read by itself: both ends may agree on another one later.
        first, second = (bool(func(*pair).flatten()[0]) for pair in pairs)
        return first == second


def _ends(law: Law, drawn: Tensor) -> tuple[Tensor, Tensor] | None:
    """The ends of the support as tensors that torch promotes as it does ``drawn``."""
    support = _support(law, drawn.dtype)
    if support is None:
        return None
    low, high = (drawn.new_full([1] * drawn.dim(), end) for end in support)
    return low, high


def _support(law: Law, dtype: torch.dtype) -> tuple[float, float] | None:
    if law == Uniform():
        return 0.0, _BELOW_ONE.get(dtype, 1.0)
    if isinstance(law, Uniform):
        return law.low, law.high
    if isinstance(law, Integers):
        return law.low, law.high - 1
    if isinstance(law, Exponential):
        return 0.0, math.inf
    return None


RULES: dict[OpOverload, Callable[..., Any]] = {
    overload: _compare
    for name in "lt le gt ge less less_equal greater greater_equal".split()
    for overload in (getattr(_aten, name).Scalar, getattr(_aten, name).Tensor)
}
