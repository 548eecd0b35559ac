"""Rules for tensors: their shape, their type, and that they are finite."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from caveat._validation.numbers import keep_prob, positive
from caveat.errors import InputTypeError, ParameterError, ShapeError


def positive_tensor(name: str, value: Tensor) -> Tensor:
    """A tensor of finite numbers above 0, with its graph."""
    if value.numel() == 0 or not bool((torch.isfinite(value) & (value > 0)).all()):
        raise ParameterError(f"{name} must be finite and above 0. Got {value}.")
    return value


def positive_values(name: str, value: Any) -> Any:
    """A finite number above 0, or a tensor of them."""
    if isinstance(value, Tensor):
        return positive_tensor(name, floating(name, value))
    return positive(name, value)


def keep_probs(name: str, value: Any) -> Any:
    """A keep probability in (0, 1], or a tensor of them."""
    if not isinstance(value, Tensor):
        return keep_prob(name, value)
    keeps = positive_tensor(name, floating(name, value))
    keep_prob(name, keeps.detach().max().item())
    return keeps


def scalar(name: str, value: Any) -> Tensor:
    """One number, as a tensor without axes, with its graph."""
    number = (
        value if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)
    )
    if number.ndim:
        raise ShapeError(
            f"{name} must be a single number. Got the shape {tuple(number.shape)}; "
            f"sum it first."
        )
    return number


def per_row(name: str, shape: Sequence[int], rows: Sequence[int]) -> None:
    """``name`` must be one number, or one for each row of weights."""
    if len(shape) and tuple(shape) != tuple(rows):
        raise ShapeError(
            f"{name} must be a number or have the shape {tuple(rows)}, one per row of "
            f"weights. Got {tuple(shape)}."
        )


def rows_of_weights(name: str, value: Any) -> Tensor:
    """Floating-point weights (*rows, weights), none of the axes empty."""
    weights = floating(name, value)
    if weights.ndim == 0 or weights.numel() == 0:
        raise ShapeError(
            f"{name} must have the shape (*rows, weights), the weights of a unit last. "
            f"Got {tuple(weights.shape)}."
        )
    return finite(name, weights)


def log_likelihoods(value: Any) -> Tensor:
    """Log-likelihoods (draws, batch), one of each row under each draw."""
    tensor = draws(value, axes="(draws, batch)", least=2)
    if tensor.ndim > 2:
        raise ShapeError(
            f"log_likelihood must have the shape (draws, batch). Got "
            f"{tuple(tensor.shape)}; sum it over the outputs of a row."
        )
    return tensor


def module(name: str, value: Any) -> nn.Module:
    """A torch module."""
    if not isinstance(value, nn.Module):
        raise InputTypeError(
            f"{name} must be a torch.nn.Module. Got {type(value).__name__}."
        )
    return value


def precision(value: Any) -> Tensor:
    """Observation precision tau: finite and positive, a number or one per output."""
    if type(value) is float and 0.0 < value < math.inf:  # the usual case
        return torch.tensor(value, dtype=torch.float64)
    try:
        tau = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputTypeError(
            f"precision must be a number or one number per output. "
            f"Got {value!r} of type {type(value).__name__}."
        ) from error
    if tau.is_complex() or tau.dtype == torch.bool:
        raise InputTypeError(f"precision must be real. Got dtype {tau.dtype}.")
    if isinstance(value, float | Sequence):  # torch would round them to float32
        tau = torch.as_tensor(value, dtype=torch.float64)
    if not _all_positive(tau):
        raise ParameterError(
            f"precision (tau, the inverse variance of the observation noise, in "
            f"units of 1/y²) must be finite and above 0. Got {value!r}. "
            f"If the noise variance is v, pass precision=1/v."
        )
    return tau.detach()


def plain_precision(value: Any) -> float | Tensor:
    """As :func:`precision`, but a usual number stays one: tensors of it cost more."""
    if type(value) is float and 0.0 < value < math.inf:
        return value
    return precision(value)


def _all_positive(tau: Tensor) -> bool:
    """Whether there are numbers, all of them finite and above 0."""
    if tau.numel() == 1:  # the usual case, of every call
        return 0 < tau.item() < math.inf
    return tau.numel() > 0 and bool((torch.isfinite(tau) & (tau > 0)).all())


def floating(name: str, value: Any) -> Tensor:
    """A tensor of real floating-point numbers."""
    if not isinstance(value, Tensor):
        raise InputTypeError(
            f"{name} must be a torch.Tensor. Got {type(value).__name__}."
        )
    if not value.is_floating_point():
        raise InputTypeError(
            f"{name} must hold floating-point numbers. Got dtype {value.dtype}."
        )
    return value


def same_shape(name: str, shape: Sequence[int], expected: Sequence[int]) -> None:
    """``name`` must have exactly the shape ``expected``."""
    if tuple(shape) != tuple(expected):
        raise ShapeError(
            f"{name} must have the shape {tuple(expected)} of the predictions. "
            f"Got {tuple(shape)}; reshape it, so that nothing broadcasts by accident."
        )


def draws(value: Any, *, axes: str, least: int) -> Tensor:
    """Draws of a model, draws first: at least ``least`` axes, none of size 0."""
    tensor = floating("draws", value)
    shape = tuple(tensor.shape)
    if tensor.ndim < least:
        raise ShapeError(
            f"draws must have the shape {axes}. Got {shape}, which has too few axes. "
            f"Stack the passes along a new first axis: torch.stack(passes)."
        )
    if tensor.shape[0] == 0:
        raise ShapeError(
            f"draws must hold at least one draw. Got {shape} for {axes}; run the "
            f"model at least once."
        )
    if tensor.numel() == 0:
        raise ShapeError(
            f"draws must not be empty. Got {shape} for {axes}; leave out batches "
            f"without rows."
        )
    return tensor


def continues(block: Tensor, shape: Sequence[int] | None) -> Tensor:
    """A block of draws of the same rows and outputs as the blocks before."""
    if shape is not None and tuple(block.shape[1:]) != tuple(shape):
        raise ShapeError(
            f"Each block must hold draws of the same rows and outputs, of shape "
            f"(draws, {', '.join(map(str, shape))}). Got {tuple(block.shape)}; use one "
            f"accumulator per batch of rows and concatenate the results."
        )
    return block


def finite_draws(name: str, bad: Tensor) -> None:
    """None of the draws may be ``bad`` (draws, batch, …)."""
    flat = bad.reshape(*bad.shape[:2], -1).any(-1)  # shape: (draws, batch)
    if not bool(flat.any()):
        return
    n_draws, n_rows = int(flat.any(1).sum()), int(flat.any(0).sum())
    raise ParameterError(
        f"{name} must be finite. {n_draws} of {flat.shape[0]} draws and {n_rows} of "
        f"{flat.shape[1]} rows are not (first: draw {int(flat.any(1).int().argmax())}, "
        f"row {int(flat.any(0).int().argmax())}). Look for NaN in the inputs or "
        f"weights, or for overflow in half precision."
    )


def finite(name: str, value: Tensor) -> Tensor:
    """A tensor without NaN or infinity."""
    bad = int((~torch.isfinite(value)).sum())
    if bad:
        raise ParameterError(
            f"{name} must be finite. {bad} of {value.numel()} values are NaN or "
            f"infinite; leave out these rows."
        )
    return value


def as_tensor(y: Any, *, real: bool = False) -> Any:
    """What was observed as a tensor: arrays, lists, and columns of a data frame.

    With ``real``, whole numbers are taken for real ones, but those of a tensor, whose
    type was chosen. What is no array of numbers is passed on, for others to refuse.
    """
    if isinstance(y, Tensor):
        return y
    try:
        array = np.asarray(y)
    except (TypeError, ValueError):  # rows of different lengths
        return y
    if array.dtype.kind not in "iufb":
        return y
    if real and array.dtype.kind in "iu":
        return torch.as_tensor(array.astype(np.float64))
    return torch.as_tensor(array.copy())  # it may be read-only, or run backwards


def target(y: Any, like: Tensor) -> Tensor:
    """Observed values of exactly the shape, and then of the type, of ``like``."""
    observed = floating("y", y)
    if observed.shape != like.shape:
        expected = tuple(like.shape)
        remedy = (
            f"pass y.reshape{expected}"
            if observed.numel() == like.numel()
            else "pass one value per row and output"
        )
        raise ShapeError(
            f"y must have the shape {expected} of the mean, as nothing is broadcast. "
            f"Got {tuple(observed.shape)}; {remedy}."
        )
    return finite("y", observed).to(like)


def precision_for(value: Any, like: Tensor) -> Tensor:
    """Observation precision, broadcast to ``like`` (batch, *event)."""
    if type(value) is float and _is_normal(value, like.dtype):  # the usual case
        return like.new_full((), value).expand(like.shape)
    given = precision(value)
    tau = given.to(like)
    if tau is not given:
        tau = precision(tau)  # again: it may underflow to 0
    shape = tuple(like.shape)
    try:
        return tau.expand(shape)
    except RuntimeError:
        raise ShapeError(
            f"precision must broadcast to the shape {shape} of the mean, batch first: "
            f"a number, one per output {shape[1:]}, or one per row "
            f"{(shape[0], *[1] * (len(shape) - 1))}. Got {tuple(tau.shape)}."
        ) from None


def _is_normal(value: float, dtype: torch.dtype) -> bool:
    """Whether a number is above 0 and finite in a type, too."""
    limits = torch.finfo(dtype)
    return limits.tiny <= value <= limits.max
