"""Values that are affine in masks, and their averages over masks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from caveat.maxent.markers import Array, Marker


@dataclass(frozen=True)
class MarkerPart:
    """What the units of one marker contribute to a value.

    Attributes
    ----------
    slope : Array
        If ``axis`` is None, of shape (units, *value): the b_k, unit first. Otherwise
        of the shape of the value, whose place k along ``axis`` depends on unit k alone.
    axis : int or None
        As above.
    n_units : int
        Of the marker.
    """

    slope: Array
    axis: int | None
    n_units: int

    def dense(self) -> Array:
        """The b_k, of shape (units, *value)."""
        if self.axis is None:
            return self.slope
        shape = [1] * self.slope.ndim
        shape[self.axis] = self.n_units
        eye = jnp.eye(self.n_units, dtype=self.slope.dtype)
        return self.slope[None] * eye.reshape(self.n_units, *shape)


@dataclass(frozen=True)
class Affine:
    """constant + sum_k b_k z_k, or the exponential of that if ``log``."""

    constant: Array
    parts: Mapping[str, MarkerPart]
    log: bool = False

    def mean(self, markers: Mapping[str, Marker]) -> Array:
        """c + sum_k (1 - f_k) b_k, of what is in the exponential if ``log``."""
        total = self.constant
        for name, part in self.parts.items():
            total = total + _sum(markers[name].keep, part.dense())
        return total

    def variance(self, markers: Mapping[str, Marker]) -> Array:
        """sum_k f_k (1 - f_k) b_k^2, of what is in the exponential if ``log``."""
        total = jnp.zeros_like(self.constant)
        for name, part in self.parts.items():
            spread = markers[name].keep * markers[name].rate
            total = total + _sum(spread, part.dense() ** 2)
        return total

    def log_mean_exp(self, markers: Mapping[str, Marker]) -> Array:
        """c + sum_k log(f_k + (1 - f_k) exp(b_k))."""
        total = self.constant
        for name, part in self.parts.items():
            total = total + _log_mean_exp(markers[name], part.dense()).sum(0)
        return total


@dataclass(frozen=True)
class Opaque:
    """Depends on masks in a way that is not followed, because of an operation."""

    operation: str


def _sum(weights: Any, slopes: Array) -> Array:
    return jnp.tensordot(jnp.asarray(weights, slopes.dtype), slopes, axes=1)


def _log_mean_exp(marker: Marker, slopes: Array) -> Array:
    shape = (marker.n_units, *[1] * (slopes.ndim - 1))
    log_drop = jnp.log(jnp.asarray(marker.rate, slopes.dtype)).reshape(shape)
    log_keep = jnp.log(jnp.asarray(marker.keep, slopes.dtype)).reshape(shape)
    return jnp.logaddexp(log_drop, log_keep + slopes)
