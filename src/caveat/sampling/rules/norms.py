"""Norms with running statistics: these are used, and never written.

Both operations may write to their running statistics, which their schemas do not say,
so the recorder cannot redirect it. Instance norm does so in some versions of torch even
when it is told to use what it has: the mean over rows of one and the same number, which
rounding may change.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from caveat._torch import OpOverload
from caveat.sampling.passes import Pass

_aten = torch.ops.aten


def _running_statistics(
    run: Pass,
    func: OpOverload,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    variance: Tensor | None,
    own: bool,
    *options: Any,
) -> Tensor:
    if mean is None or variance is None:
        return run.recorder.run(func, x, weight, bias, mean, variance, own, *options)
    # With given statistics, instance norm is batch norm.
    batch_norm, given = _aten.batch_norm.default, (mean, variance, False)
    return run.recorder.run(batch_norm, x, weight, bias, *given, *options)


RULES: dict[OpOverload, Callable[..., Any]] = {
    _aten.batch_norm.default: _running_statistics,
    _aten.instance_norm.default: _running_statistics,
}
