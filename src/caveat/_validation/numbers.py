"""Rules for single numbers: their kind and their range."""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from torch import Tensor

from caveat.errors import InputTypeError, ParameterError

_SHORTEST = 1e-150


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


def keep_prob(name: str, value: Any) -> float:
    """A keep probability, one minus a drop rate, in (0, 1]."""
    number = positive(name, value)
    if number > 1.0:
        raise ParameterError(
            f"{name} must lie in (0, 1]. Got {value}. It is the probability that a "
            f"unit is kept: one minus the drop rate."
        )
    return number


def several(name: str, value: Any) -> int:
    """An integer of at least two (draws whose spread is to be measured)."""
    number = positive_int(name, value)
    if number < 2:
        raise ParameterError(
            f"{name} must be at least 2, as the error is measured by the spread. "
            f"Got {value}."
        )
    return number


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
