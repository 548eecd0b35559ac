"""Observations as a predictive needs them: a tensor of its shape and type."""

from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from caveat import _validation
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.predictive import (
    ClassificationPredictive,
    Predictive,
    RegressionPredictive,
)


def observed_values(predictive: RegressionPredictive, y: Any) -> Tensor:
    """Observations of a regression, in the shape and type of its mean.

    Parameters
    ----------
    predictive : RegressionPredictive
        With at least one row.
    y : array or Tensor, shape (rows,) or that of the mean
        A trailing axis of size 1 may be there or not; nothing else is broadcast.

    Returns
    -------
    Tensor, of the shape of the mean
    """
    like = regression_of(predictive).mean
    values = _real_tensor(y).to(like.dtype)
    if values.shape != like.shape and _is_column(values.shape, like.shape):
        values = values.reshape(like.shape)
    return _validation.target(values, like)


def observed_labels(predictive: ClassificationPredictive, y: Any) -> Tensor:
    """Observed classes of a classification, as class numbers.

    Parameters
    ----------
    predictive : ClassificationPredictive
        With at least one row.
    y : array or Tensor of integers, shape (rows, *extra)
        Class numbers from 0.

    Returns
    -------
    Tensor of int64, shape (rows, *extra)
    """
    _classification(predictive)
    labels = y if isinstance(y, Tensor) else _whole_numbers(y)
    shape, n_classes = predictive.probs.shape[:-1], predictive.probs.shape[-1]
    found = _validation.class_labels(labels, shape, n_classes)
    return found.to(predictive.probs.device)


def one_output(predictive: RegressionPredictive, y: Any) -> Tensor:
    """Observations of a regression with a single output; shape (rows,)."""
    values = observed_values(predictive, y)
    only_output(predictive)
    return values.reshape(-1)


def only_output(predictive: RegressionPredictive) -> RegressionPredictive:
    """The predictive, if it has a single output per row."""
    mean = predictive.mean
    if mean.numel() != len(mean):
        raise ShapeError(
            f"The predictive must have one output per row. Got outputs of shape "
            f"{tuple(mean.shape[1:])}; make one predictive for each output."
        )
    return predictive


def regression_of(predictive: Predictive) -> RegressionPredictive:
    """The predictive, if it is one of a regression with at least one row."""
    if not isinstance(predictive, RegressionPredictive):
        raise InputTypeError(
            f"This is for regression, a RegressionPredictive. "
            f"Got {type(predictive).__name__}."
        )
    _some_rows(predictive)
    return predictive


def _classification(predictive: Predictive) -> None:
    if not isinstance(predictive, ClassificationPredictive):
        raise InputTypeError(
            f"This is for classification, a ClassificationPredictive. "
            f"Got {type(predictive).__name__}."
        )
    _some_rows(predictive)


def _some_rows(predictive: Predictive) -> None:
    if len(predictive) == 0:
        raise ParameterError(
            "There must be at least one row to judge a predictive by. Got none."
        )


def _real_tensor(y: Any) -> Tensor:
    if isinstance(y, Tensor):
        tensor = y.detach()
    else:
        tensor = torch.from_numpy(_real_array(y))
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise InputTypeError(f"y must be real numbers. Got dtype {tensor.dtype}.")
    return tensor


def _whole_numbers(y: Any) -> Tensor:
    """Class numbers from whatever numpy takes; the check of their type follows."""
    given = np.array(y)  # a copy, as what others own may be read-only
    if given.dtype.kind == "O" and all(isinstance(v, Integral) for v in given.flat):
        given = given.astype(np.int64)
    if given.dtype.kind not in "biuf":
        raise InputTypeError(
            f"y must hold class numbers, integers from 0. Got {type(y).__name__} of "
            f"{_kind_of(y)}; number the classes first, as "
            f"np.unique(y, return_inverse=True) does."
        )
    return torch.from_numpy(given)


def _real_array(y: Any) -> np.ndarray[Any, Any]:
    kind = f"{type(y).__name__} of {_kind_of(y)}"
    if np.asarray(y).dtype.kind not in "iufO":  # no bools, text, dates, complex
        raise InputTypeError(f"y must be real numbers. Got {kind}.")
    try:
        return np.array(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"y must be real numbers. Got {kind}.") from error


def _kind_of(y: Any) -> str:
    kind = np.asarray(y).dtype
    return "text" if kind.kind in "US" else str(kind)


def _is_column(shape: torch.Size, expected: torch.Size) -> bool:
    """Whether the shapes differ by a last axis of size 1 only."""
    short, long = sorted((tuple(shape), tuple(expected)), key=len)
    return long == (*short, 1)
