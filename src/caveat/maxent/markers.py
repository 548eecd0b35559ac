"""What a model drops: the marker inside the model, and who answers it.

Outside the transforms of this package a marker hands its value back. A transform
answers it with masks, for as long as it runs the model.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from caveat.errors import InputTypeError, ParameterError, ShapeError

Array: TypeAlias = jax.Array


@dataclass(frozen=True, eq=False)
class Marker:
    """One marked value: its units, and how often each is dropped.

    Attributes
    ----------
    name : str
        As given to :func:`dropout`.
    shape : tuple of int
        Of the marked value.
    units : tuple of int
        Axes along which the mask varies; what shares a place on them is dropped
        together.
    data : int or None
        Axis of the data, along which masks may differ.
    rate : ndarray or Array, shape (n_units,)
        Drop rate of each unit. A numpy array, unless JAX is tracing it.
    """

    name: str
    shape: tuple[int, ...]
    units: tuple[int, ...]
    data: int | None
    rate: Any

    @property
    def n_units(self) -> int:
        """How many masks bits one datum has."""
        return math.prod(self.shape[axis] for axis in self.units)

    @property
    def known(self) -> bool:
        """Whether the rates are numbers, not being traced."""
        return isinstance(self.rate, np.ndarray)

    @property
    def random(self) -> np.ndarray[Any, Any]:
        """Numbers of the units that may be dropped and may be kept."""
        if not self.known:
            return np.arange(self.n_units)
        return np.flatnonzero((self.rate > 0.0) & (self.rate < 1.0))

    @property
    def keep(self) -> Any:
        """Probability of each unit to be kept, E z; shape (n_units,)."""
        return 1.0 - self.rate

    def apply(self, value: Array, mask: Any) -> Array:
        """``value`` times a mask (n_units,), or (data, n_units)."""
        mask = jnp.asarray(mask, jnp.result_type(value, float))
        axes = self.units
        if mask.ndim == 2 and self.data is not None:
            axes = (self.data, *axes)
        sizes = [self.shape[axis] for axis in axes]
        if list(mask.shape) != sizes:
            mask = mask.reshape(sizes)
        order = np.argsort(axes)
        if list(order) != list(range(len(axes))):
            mask = mask.transpose(order)
        others = [axis for axis in range(len(self.shape)) if axis not in axes]
        return value * jnp.expand_dims(mask, others)


Answer: TypeAlias = Callable[[Marker], Any]
_answer: ContextVar[Answer | None] = ContextVar("caveat.maxent", default=None)


def dropout(
    name: str,
    value: Any,
    rate: Any,
    *,
    units: int | tuple[int, ...] | None = None,
    data: int | None = None,
) -> Array:
    """Mark a value of a NumPyro model as dropped; by itself it changes nothing.

    Masks are not scaled: a unit is multiplied by 0 or by 1, as in the papers. So with
    ``weight_averaged`` a prediction uses ``(1 - rate) * value``.

    Parameters
    ----------
    name : str
        Of the marker, unlike all others in the model.
    value : array
        Weights, inputs or activations.
    rate : float or array
        Probability of being dropped, in [0, 1]; a number, or one for each unit.
    units : int or tuple of int, optional
        Axes whose places are dropped, each place on its own; what lies along the
        other axes is dropped with it. For a weight matrix (inputs, outputs) 0 drops
        inputs, and (0, 1) drops each weight by itself. A vector needs no ``units``, nor
        does a single number.
    data : int, optional
        Axis of the data, if ``value`` has one, as inputs and activations do: then
        each datum can have masks of its own.

    Returns
    -------
    Array
        ``value``; inside a transform, ``value`` times a mask.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> dropout("w", jnp.array([1.0, 2.0]), 0.5)
    Array([1., 2.], dtype=float32)
    """
    value = jnp.asarray(value)
    marker = _marker(name, value.shape, rate, units, data)
    answer = _answer.get()
    mask = None if answer is None else answer(marker)
    return value if mask is None else marker.apply(value, mask)


@contextmanager
def answering(answer: Answer) -> Iterator[None]:
    """Let ``answer`` give the masks of all markers met in the block."""
    token = _answer.set(answer)
    try:
        yield
    finally:
        _answer.reset(token)


def _marker(
    name: str, shape: tuple[int, ...], rate: Any, units: Any, data: int | None
) -> Marker:
    if not isinstance(name, str):
        raise InputTypeError(
            f"The name of a marker must be a string. Got {name!r}; write "
            f'dropout("w", w, rate).'
        )
    axes = _axes(name, shape, units)
    rows = None if data is None else _axis(name, shape, data)
    if rows in axes:
        raise ParameterError(
            f"data of the marker {name!r} must not be one of its units {axes}. Got "
            f"{data}; for activations (data, units) pass units=1, data=0."
        )
    sizes = tuple(shape[axis] for axis in axes)
    return Marker(name, shape, axes, rows, _rates(name, rate, sizes))


def _axes(name: str, shape: tuple[int, ...], units: Any) -> tuple[int, ...]:
    if not shape and units in (None, ()):
        return ()
    if units is None:
        if len(shape) != 1:
            raise ParameterError(
                f"The marker {name!r} has a value of shape {shape}, so units= must say "
                f"which axes are dropped. For weights (inputs, outputs) units=0 drops "
                f"inputs; for activations (data, units) pass units=1, data=0."
            )
        return (0,)
    given = units if isinstance(units, tuple) else (units,)
    axes = tuple(_axis(name, shape, axis) for axis in given)
    if not axes or len(set(axes)) != len(axes):
        raise ParameterError(
            f"units of the marker {name!r} must be different axes, at least one. "
            f"Got {units!r}."
        )
    return axes


def _axis(name: str, shape: tuple[int, ...], axis: Any) -> int:
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise InputTypeError(
            f"An axis of the marker {name!r} must be a whole number. Got {axis!r}."
        )
    if not -len(shape) <= axis < len(shape):
        raise ParameterError(
            f"An axis of the marker {name!r} must fit its value of shape {shape}. "
            f"Got {axis}."
        )
    return int(axis) % len(shape)


def _rates(name: str, rate: Any, sizes: tuple[int, ...]) -> Any:
    if isinstance(rate, jax.core.Tracer):
        _fits(name, rate.shape, sizes)
        return jnp.broadcast_to(rate, sizes).reshape(-1)
    try:
        rates = np.asarray(rate, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(
            f"The drop rate of the marker {name!r} must be a number, or one for each "
            f"unit. Got {rate!r}."
        ) from None
    _fits(name, rates.shape, sizes)
    if not bool(((rates >= 0.0) & (rates <= 1.0)).all()):
        raise ParameterError(
            f"The drop rate of the marker {name!r} must lie in [0, 1]. Got {rate}. It "
            f"is the probability of being dropped: one minus that of being kept."
        )
    return np.broadcast_to(rates, sizes).reshape(-1)


def _fits(name: str, shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    try:
        fits = np.broadcast_shapes(shape, sizes) == sizes
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"The drop rate of the marker {name!r} must be a number or have the shape "
            f"{sizes} of its units. Got {shape}."
        )
