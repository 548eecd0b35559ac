"""Rules for classes: their axis, their numbers and their names."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from caveat._validation.tensors import draws
from caveat.errors import InputTypeError, ParameterError, ShapeError


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
