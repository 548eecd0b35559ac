"""Range and shape rules that stand in more than one place, one function each.

Public functions call these on entry; private ones trust their callers. Each function
returns the value it checked, in the type the callee works with. A rule that only one
module can know, such as which settings exclude each other, stands in that module.
"""

import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from caveat.errors import (
    InputTypeError,
    ParameterError,
    RowIndexError,
    ShapeError,
)


def positive_int(name: str, value: Any) -> int:
    """An integer of at least one (``n_draws``, ``batch_size``)."""
    number = _whole(name, value, least=1)
    if number < 1:
        raise ParameterError(f"{name} must be at least 1. Got {value}.")
    return number


def boolean(name: str, value: Any) -> bool:
    """True or False: of a word such as "no" Python would make True."""
    if not isinstance(value, bool | np.bool_):
        raise InputTypeError(
            f"{name} must be True or False. Got {value!r} of type "
            f"{type(value).__name__}."
        )
    return bool(value)


def axis(name: str, value: Any) -> int:
    """The number of an axis, counted from the front: 0, 1, 2, …"""
    number = _whole(name, value, least=0)
    if number < 0:
        raise ParameterError(
            f"{name} must be counted from the front, at least 0. Got {value}."
        )
    return number


def draw_number(value: Any) -> int:
    """The number of a draw: 0, 1, 2, …"""
    number = _whole("A draw number", value, least=0)
    if number < 0:
        raise ParameterError(f"A draw number must be at least 0. Got {value}.")
    return number


def unit_interval(name: str, value: Any) -> float:
    """A real number strictly between 0 and 1 (levels, tolerances)."""
    number = _real(name, value, "between 0 and 1")
    if not 0.0 < number < 1.0:
        percent = f"; if that is a percentage, pass {number / 100:g}"
        hint = percent if 1.0 < number < 100.0 else ""
        raise ParameterError(
            f"{name} must lie strictly between 0 and 1. Got {value}{hint}."
        )
    return number


def positive(name: str, value: Any) -> float:
    """A finite real number above 0 (length-scales, penalties, scales)."""
    number = _real(name, value, "above 0")
    if not (math.isfinite(number) and number > 0.0):
        raise ParameterError(f"{name} must be finite and above 0. Got {value}.")
    return number


def lengthscale(value: Any) -> float:
    """A length-scale l, whose square, the prior precision l², is a number, too."""
    length = positive("lengthscale", value)
    if not _SHORTEST < length < 1.0 / _SHORTEST:
        raise ParameterError(
            f"lengthscale must lie between {_SHORTEST:g} and {1 / _SHORTEST:g}, as its "
            f"square is what counts: the prior of a weight is N(0, 1/l²). Got {value}."
        )
    return length


_SHORTEST = 1e-150


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """One of the names that are known (kinds, versions, data sets)."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        listed = ", ".join(map(repr, names))
        raise ParameterError(f"{name} must be one of {listed}. Got {value!r}.")
    return value


def _whole(name: str, value: Any, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputTypeError(
            f"{name} must be a whole number of at least {least}. "
            f"Got {value!r} of type {type(value).__name__}."
        )
    return int(value)


def _real(name: str, value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(
            f"{name} must be a number {where}. "
            f"Got {value!r} of type {type(value).__name__}."
        )
    return float(value)


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


def keep_prob(name: str, value: Any) -> float:
    """A keep probability, one minus a drop rate, in (0, 1]."""
    number = positive(name, value)
    if number > 1.0:
        raise ParameterError(
            f"{name} must lie in (0, 1]. Got {value}. It is the probability that a "
            f"unit is kept: one minus the drop rate."
        )
    return number


def keep_probs(name: str, value: Any) -> Any:
    """A keep probability in (0, 1], or a tensor of them."""
    if not isinstance(value, Tensor):
        return keep_prob(name, value)
    keeps = positive_tensor(name, floating(name, value))
    keep_prob(name, keeps.detach().max().item())
    return keeps


def several(name: str, value: Any) -> int:
    """An integer of at least two (draws whose spread is to be measured)."""
    number = positive_int(name, value)
    if number < 2:
        raise ParameterError(
            f"{name} must be at least 2, as the error is measured by the spread. "
            f"Got {value}."
        )
    return number


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


def drop_rate(value: Any, *, where: str) -> float:
    """A drop rate, Pr(zero), in [0, 1)."""
    rate = _real(f"The drop rate at {where}", value, "in [0, 1)")
    if not (math.isfinite(rate) and 0.0 <= rate < 1.0):
        place = "" if where == "drop_rate" else f" at {where}"
        raise ParameterError(
            f"A drop rate must lie in [0, 1). Got {value}{place}{_why_no_rate(rate)}."
        )
    return rate


def _why_no_rate(rate: float) -> str:
    if rate == 1.0:
        return (
            ": a unit that is always dropped carries nothing. Set a rate below 1 "
            "there, or remove it"
        )
    if 1.0 < rate <= 100.0:
        return f"; if that is a percentage, pass {rate / 100:g}"
    return ": it is the probability that a unit is dropped"


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


def quantile_levels(q: Any, name: str = "q") -> list[float]:
    """One level or a sequence of levels, each strictly between 0 and 1."""
    if isinstance(q, Tensor):
        q = q.tolist()
    values = [q] if isinstance(q, Real) else q
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InputTypeError(
            f"{name} must be a number between 0 and 1 or a sequence of them. "
            f"Got {q!r} of type {type(q).__name__}."
        )
    levels = [unit_interval(name, level) for level in values]
    if not levels:
        raise ParameterError(
            f"{name} must hold at least one level. Got an empty sequence."
        )
    return levels


def logits(value: Any) -> Tensor:
    """Logits (draws, batch, *extra, classes) of at least two classes."""
    axes = "(draws, batch, *extra, classes)"
    tensor = draws(value, axes=axes, least=2)
    if tensor.ndim < 3 or tensor.shape[-1] < 2:
        raise ShapeError(
            f"logits must have the shape {axes}, with two or more classes last. Got "
            f"{tuple(tensor.shape)}. For a binary model with one logit z, stack [0, z]:"
            f" torch.cat([torch.zeros_like(z), z], -1), or do so in output=. If the "
            f"classes are on another axis (images), move them last in output=."
        )
    return tensor


def class_axis(class_dim: Any, shape: Sequence[int]) -> int:
    """The axis of the classes in (batch, *event), counted from the front.

    None will do where there is but one axis beside the batch.
    """
    n_axes = len(shape)
    if class_dim is None:
        if n_axes == 2:
            return 1
        raise ShapeError(
            f"The output has the shape {tuple(shape)}, and any axis after the first "
            f"may hold the classes. Say which: class_dim=-1 for tokens (batch, length, "
            f"classes), class_dim=1 for images (batch, classes, height, width)."
        )
    if isinstance(class_dim, bool) or not isinstance(class_dim, Integral):
        raise InputTypeError(
            f"class_dim must be the number of an axis. Got {class_dim!r}."
        )
    axis = int(class_dim)
    if not -n_axes <= axis < n_axes or axis % n_axes == 0:
        raise ParameterError(
            f"class_dim must be an axis of the output after the first, which has the "
            f"rows. Got {class_dim} for the shape {tuple(shape)}."
        )
    return axis % n_axes


def class_labels(y: Any, shape: Sequence[int], n_classes: int) -> Tensor:
    """Observed classes 0 … n_classes - 1, of exactly ``shape``."""
    if not isinstance(y, Tensor):
        raise InputTypeError(f"y must be a torch.Tensor. Got {type(y).__name__}.")
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise InputTypeError(
            f"y must hold class numbers of an integer dtype. Got {y.dtype}; "
            f"convert with y.long(), and one-hot rows with y.argmax(-1)."
        )
    if tuple(y.shape) != tuple(shape):
        raise ShapeError(
            f"y must have the shape {tuple(shape)}, one class number per prediction. "
            f"Got {tuple(y.shape)}; nothing is broadcast, so reshape it."
        )
    bad = sorted(set(y[(y < 0) | (y >= n_classes)].tolist()))
    if bad:
        shown = ", ".join(map(str, bad[:5])) + (", …" if len(bad) > 5 else "")
        raise ParameterError(
            f"y must hold class numbers from 0 to {n_classes - 1}. Got {shown}; "
            f"leave out rows with an ignored or unknown label."
        )
    return y.long()


def class_names(names: Any, n_classes: int) -> list[Any]:
    """Names of all classes, each its own, in the order of their numbers."""
    found = names.tolist() if isinstance(names, np.ndarray | Tensor) else list(names)
    if len(found) != n_classes or len(set(found)) != n_classes:
        raise ParameterError(
            f"classes must be the {n_classes} different names of the classes, in the "
            f"order of their numbers. Got {len(found)}, {len(set(found))} different."
        )
    return found


def row_index(index: Any, n_rows: int) -> slice | Tensor:
    """Rows as a forward slice, or as a tensor of row numbers or a mask."""
    if isinstance(index, tuple | bool) or index is None or index is Ellipsis:
        raise InputTypeError(
            f"Only rows can be chosen, by a number, slice, mask or list of numbers. "
            f"Got {index!r}; index the answer instead, as in predictive.mean[:, 0]."
        )
    if isinstance(index, slice):
        numbers = range(n_rows)[index]
        return index if numbers.step > 0 else torch.tensor(list(numbers)).long()
    if isinstance(index, Integral):
        row = row_numbers(torch.tensor([int(index)]), n_rows).item() % n_rows
        return slice(row, row + 1)
    try:
        rows = torch.as_tensor(index).cpu()  # as an index it serves all devices
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputTypeError(f"Rows cannot be chosen by {index!r}.") from error
    if rows.numel() == 0 and rows.dtype != torch.bool:
        rows = rows.long()
    if rows.ndim != 1 or rows.is_floating_point() or rows.is_complex():
        raise InputTypeError(
            f"Rows must be chosen by one axis of row numbers or bools. "
            f"Got shape {tuple(rows.shape)} and dtype {rows.dtype}."
        )
    if rows.dtype == torch.bool:
        if len(rows) != n_rows:
            raise ShapeError(
                f"A mask must have one bool per row. Got {len(rows)} for {n_rows} rows."
            )
        return rows
    return row_numbers(rows.long(), n_rows)


def row_numbers(rows: Tensor, n_rows: int) -> Tensor:
    """Numbers of rows that there are; negative ones count from the end."""
    bad = rows[(rows < -n_rows) | (rows >= n_rows)]
    if len(bad):
        raise RowIndexError(
            f"Row numbers must lie in [-{n_rows}, {n_rows}). Got {int(bad[0])}."
        )
    return rows


def instances(name: str, values: Sequence[Any], kind: type[Any]) -> list[Any]:
    """A sequence of at least one value, all of the same ``kind``."""
    values = list(values)
    if not values:
        raise ParameterError(
            f"{name} must hold at least one {kind.__name__}. Got none."
        )
    for value in values:
        if not isinstance(value, kind) or type(value) is not type(values[0]):
            raise InputTypeError(
                f"{name} must all be of the same kind of {kind.__name__}. "
                f"Got {type(value).__name__} beside {type(values[0]).__name__}."
            )
    return values


def all_equal(name: str, values: Sequence[Any]) -> None:
    """Predictives are joined only if they agree in ``name``."""
    for value in values:
        if value != values[0]:
            raise ShapeError(
                f"Predictives can be joined only if they agree in the {name}. "
                f"Got {values[0]} and {value}; make them with the same settings."
            )
