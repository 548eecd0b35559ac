"""Statistical assertions that measure their own error.

At ``z=5`` one comparison fails by chance less than once in a million.
"""

import math

import torch
from torch import Tensor


def assert_mean_is(draws: Tensor, expected: Tensor | float, z: float = 5.0) -> None:
    """The mean of ``draws`` over its first axis is ``expected``, within its error."""
    standard_error = draws.std(0) / math.sqrt(len(draws))
    _assert_close("mean", draws.mean(0), expected, standard_error, z)


def assert_variance_is(draws: Tensor, expected: Tensor | float, z: float = 5.0) -> None:
    """The variance of ``draws`` over its first axis is ``expected``.

    The standard error of a sample variance is sqrt((m4 - m2²) / T), with the central
    moments m2 and m4 of the draws themselves.
    """
    deviation = draws - draws.mean(0)
    second, fourth = deviation.square().mean(0), deviation.pow(4).mean(0)
    standard_error = (fourth - second.square()).clamp(min=0).sqrt() / math.sqrt(
        len(draws)
    )
    _assert_close("variance", draws.var(0), expected, standard_error, z)


def _assert_close(
    name: str, found: Tensor, expected: Tensor | float, error: Tensor, z: float
) -> None:
    wanted = torch.as_tensor(expected, dtype=found.dtype, device=found.device)
    assert not bool(found.isnan().any()), f"{name} is NaN"
    gap = (found - wanted.expand_as(found)).abs()
    # Constant draws have no error: they must hit the value but for rounding.
    rounding = 8 * torch.finfo(found.dtype).eps * wanted.abs().clamp(min=1.0)
    worst = float((gap / (error + rounding / z)).max())
    assert worst < z, f"{name} is {worst:.1f} standard errors off (limit {z})"
