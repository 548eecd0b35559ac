"""A fitted pool as arrays and plain values, and the way back; nothing is pickled."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from caveat.estimators.tables.classification import TableClassification
from caveat.estimators.tables.columns import Columns
from caveat.estimators.tables.heads import Heads
from caveat.estimators.tables.logistic import Logistic
from caveat.estimators.tables.nets import Nets
from caveat.estimators.tables.noise import NoiseLaw
from caveat.estimators.tables.regression import Bent, TableRegression
from caveat.estimators.tables.ridge import Ridge

_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(TableRegression, TableClassification, Columns, Ridge, Bent),
        *(Logistic, Nets, NoiseLaw, Heads),
    )
}


def taken_apart(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """A value as JSON has it; its arrays go to ``tensors`` under names of their own.

    Parameters
    ----------
    value : object
        A pool or a part of one.
    name : str
        Of its arrays.
    tensors : dict of str to Tensor
        Filled with them.

    Returns
    -------
    object
    """
    if isinstance(value, np.ndarray):
        tensors[name] = torch.from_numpy(np.ascontiguousarray(value))
        return {"array": name}
    if is_dataclass(value):
        own = {
            f.name: taken_apart(getattr(value, f.name), f"{name}.{f.name}", tensors)
            for f in fields(value)
            if f.init
        }
        return {"kind": type(value).__name__, **own}
    if isinstance(value, tuple):
        parts = enumerate(value)
        return [taken_apart(part, f"{name}.{i}", tensors) for i, part in parts]
    if isinstance(value, float) and math.isinf(value):
        return {"infinite": True}
    return value


def put_together(stored: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The way back from :func:`taken_apart`.

    Parameters
    ----------
    stored : object
        As JSON has it.
    tensors : mapping of str to Tensor
        The arrays.

    Returns
    -------
    object
        Only of the kinds known here, whatever the file says.
    """
    if isinstance(stored, list):
        return tuple(put_together(part, tensors) for part in stored)
    if not isinstance(stored, Mapping):
        return stored
    if "array" in stored:
        return tensors[stored["array"]].numpy()
    if "infinite" in stored:
        return math.inf
    values = {n: put_together(v, tensors) for n, v in stored.items() if n != "kind"}
    return _KINDS[stored["kind"]](**values)


def settled(value: Any) -> Any:
    """A pool as it would come back from disk: sums then round in the same way.

    Parameters
    ----------
    value : object
        A pool.

    Returns
    -------
    object
    """
    tensors: dict[str, Tensor] = {}
    return put_together(taken_apart(value, "", tensors), tensors)
