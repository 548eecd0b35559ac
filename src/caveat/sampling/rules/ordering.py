"""Sorting, as a look at a model sees it.

A look finds out where rows lie and whether they are kept apart; nothing is drawn, and
all numbers of a site are the same. Sorted, they would leave everything in its place, so
that rows in a random order would seem to be kept apart. So in a look, what is all ties
comes out in another order, which is as good as any.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from caveat._torch import OpOverload, op_arguments
from caveat.sampling.passes import Pass

_aten = torch.ops.aten


def _sorted(run: Pass, func: OpOverload, x: Tensor, *args: Any, **kwargs: Any) -> Any:
    found = run.recorder.run(func, x, *args, **kwargs)
    if not run.omega.looks or not x.is_floating_point() or not x.dim():
        return found
    values, places = found
    dim = _dim(func, (x, *args), kwargs)
    if places.shape[dim] < 2:
        return found
    with run.recorder:
        if bool((values == values.narrow(dim, 0, 1)).all()):
            return values, places.roll(1, dim)
    return found


def _dim(func: OpOverload, args: Any, kwargs: Any) -> int:
    names = [argument.name for argument in op_arguments(func)]
    return int({**dict(zip(names, args, strict=False)), **kwargs}.get("dim", -1))


RULES: dict[OpOverload, Callable[..., Any]] = {
    _aten.sort.default: _sorted,
    _aten.sort.stable: _sorted,
    _aten.topk.default: _sorted,
}
