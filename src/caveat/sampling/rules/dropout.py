"""The dropout family: unit, feature and alpha dropout, in place or not."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from caveat._torch import OpOverload, op_name
from caveat.sampling.passes import Drawn, Pass

_aten = torch.ops.aten

# Where SELU saturates; alpha dropout sends dropped units there.
_SATURATION = 1.7580993408473766


def times(run: Pass, x: Tensor, drawn: Drawn) -> Tensor:
    """x ∘ mask."""
    return _in_rows(run, x, drawn, lambda rows: rows * drawn.noise)


def _dropout(run: Pass, func: OpOverload, x: Tensor, p: float, train: bool) -> Tensor:
    drawn = run.mask("dropout", p, x, fires=train)
    return x if drawn is None else _returned(run, func, x, times(run, x, drawn))


def _feature_dropout(
    run: Pass, func: OpOverload, x: Tensor, p: float, train: bool
) -> Tensor:
    drawn = run.mask("feature dropout", p, x, fires=train, shape=_features(x))
    return x if drawn is None else _returned(run, func, x, times(run, x, drawn))


def _alpha_dropout(
    run: Pass, func: OpOverload, x: Tensor, p: float, train: bool
) -> Tensor:
    drawn = run.mask("alpha dropout", p, x, fires=train, scale=1.0)
    return x if drawn is None else _returned(run, func, x, _saturate(run, x, drawn, p))


def _feature_alpha_dropout(
    run: Pass, func: OpOverload, x: Tensor, p: float, train: bool
) -> Tensor:
    kind, shape = "feature alpha dropout", _features(x)
    drawn = run.mask(kind, p, x, fires=train, shape=shape, scale=1.0)
    return x if drawn is None else _returned(run, func, x, _saturate(run, x, drawn, p))


def _native_dropout(
    run: Pass, func: OpOverload, x: Tensor, p: float, train: bool | None
) -> tuple[Tensor, Tensor]:
    """What CUDA makes of dropout; the second result is the mask."""
    drawn = run.mask("dropout", p, x, fires=bool(train))
    if drawn is None:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    layout, kept = drawn.layout, drawn.noise
    with run.recorder:
        if layout is not None:
            rows = x.shape[layout.axis] // layout.factor
            kept = kept.expand(layout.split(x.shape, rows))
        return times(run, x, drawn), kept.ne(0).reshape(x.shape)


def _saturate(run: Pass, x: Tensor, drawn: Drawn, rate: float) -> Tensor:
    """Dropped units go to saturation; an affine map keeps mean and variance."""
    a = ((_SATURATION**2 * rate + 1) * (1 - rate)) ** -0.5
    with run.recorder:
        shift = (drawn.noise - 1) * (_SATURATION * a) + _SATURATION * a * rate
        scale = drawn.noise * a
    return _in_rows(run, x, drawn, lambda rows: rows * scale + shift)


def _in_rows(
    run: Pass, x: Tensor, drawn: Drawn, function: Callable[[Tensor], Tensor]
) -> Tensor:
    """Apply ``function`` with the rows on an axis of their own."""
    layout = drawn.layout
    with run.recorder:
        if layout is None or not layout.is_folded:
            return function(x)
        split = layout.split(x.shape, x.shape[layout.axis] // layout.factor)
        return function(x.reshape(split)).reshape(x.shape)


def _returned(run: Pass, func: OpOverload, x: Tensor, result: Tensor) -> Tensor:
    if op_name(func).endswith("_"):
        return run.recorder.run(_aten.copy_.default, x, result)
    return result


def _features(x: Tensor) -> tuple[int, ...]:
    return (*x.shape[:2], *[1] * (x.dim() - 2))


RULES: dict[OpOverload, Callable[..., Any]] = {
    _aten.dropout.default: _dropout,
    _aten.dropout_.default: _dropout,
    _aten.feature_dropout.default: _feature_dropout,
    _aten.feature_dropout_.default: _feature_dropout,
    _aten.alpha_dropout.default: _alpha_dropout,
    _aten.alpha_dropout_.default: _alpha_dropout,
    _aten.feature_alpha_dropout.default: _feature_alpha_dropout,
    _aten.feature_alpha_dropout_.default: _feature_alpha_dropout,
    _aten.native_dropout.default: _native_dropout,
}
