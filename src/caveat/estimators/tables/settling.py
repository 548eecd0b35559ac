"""A fitted pool in the memory order that it has after it was on disk."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def settled(value: Any) -> Any:
    """A pool whose arrays are contiguous copies: sums then round in the same way.

    Parameters
    ----------
    value : object
        A pool or a part of one.

    Returns
    -------
    object
        Of the same kind.
    """
    if isinstance(value, np.ndarray):
        return np.array(value, order="C")
    if is_dataclass(value) and not isinstance(value, type):
        own = {f.name: settled(getattr(value, f.name)) for f in fields(value) if f.init}
        return type(value)(**own)
    if isinstance(value, tuple):
        return tuple(settled(part) for part in value)
    return value
