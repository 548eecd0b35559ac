"""Targets divided by their standard deviation, and back to the units of y."""

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor

from caveat import _validation as validation
from caveat.errors import ParameterError

Values = TypeVar("Values", float, Tensor)


def precision_in_units_of_y(precision: Values, target_std: Values) -> Values:
    """tau of a net trained on y / s, in the units of y: tau / s² (ledger E18).

    Parameters
    ----------
    precision : float or Tensor
        tau in the units of the standardised targets.
    target_std : float or Tensor
        s, by which the targets were divided; one number, or one per output.

    Returns
    -------
    float or Tensor
        tau in 1/y².

    Examples
    --------
    >>> precision_in_units_of_y(4.0, 10.0)
    0.04
    """
    tau, std = _tau_and_std(precision, target_std)
    # E18: tau = tau_std / s²
    return _in_range(tau / std / std)


def precision_in_standard_units(precision: Values, target_std: Values) -> Values:
    """tau in the units of y, for a net trained on y / s: tau s² (ledger E18).

    Parameters
    ----------
    precision : float or Tensor
        tau in 1/y².
    target_std : float or Tensor
        s, by which the targets are divided; one number, or one per output.

    Returns
    -------
    float or Tensor
        tau in the units of the standardised targets.

    Examples
    --------
    >>> precision_in_standard_units(0.04, 10.0)
    4.0
    """
    tau, std = _tau_and_std(precision, target_std)
    return _in_range(tau * std * std)


def log_density_shift(
    target_std: float | Sequence[float] | Tensor, *, n_outputs: int = 1
) -> float:
    """What to add to log p(y / s) to have log p(y): minus log s of each output.

    Parameters
    ----------
    target_std : float, sequence or Tensor
        s: one number for all outputs, or one for each.
    n_outputs : int
        D, how many outputs share the one number.

    Returns
    -------
    float
        -sum_d log s_d (ledger E19), for each row.

    Examples
    --------
    >>> round(log_density_shift(10.0, n_outputs=2), 6)
    -4.60517
    """
    std = torch.as_tensor(target_std, dtype=torch.float64)
    n_equal = validation.positive_int("n_outputs", n_outputs)
    if std.ndim and n_equal > 1:
        raise ParameterError(
            f"n_outputs counts the outputs that share one target_std. Got {n_equal} "
            f"and {tuple(std.shape)} numbers; leave n_outputs out."
        )
    # E19: log p(y) = log p(y / s) - sum_d log s_d
    return -n_equal * float(validation.positive_tensor("target_std", std).log().sum())


def _in_range(tau: Values) -> Values:
    """A precision that neither overflowed nor underflowed in the new units."""
    found: Values = validation.positive_values("precision in these units", tau)
    return found


def _tau_and_std(precision: Values, target_std: Values) -> tuple[Values, Values]:
    tau = validation.positive_values("precision", precision)
    return tau, validation.positive_values("target_std", target_std)
