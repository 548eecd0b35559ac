"""Sets of masks with weights: how the average over masks is taken as a sum.

A strategy says what E_z log q(x | z∘θ) of eq. 10 is computed as. Those here replace
the law of the masks by finitely many masks; :mod:`caveat.maxent.points` has those
that need no masks.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
import numpyro

from caveat import _validation
from caveat._random import Seed, as_seed, random_uniform, stream_key
from caveat.errors import ParameterError, UnsupportedModelError
from caveat.maxent.hadamard import balanced_masks
from caveat.maxent.kernels import refuse_fresh_masks
from caveat.maxent.markers import Array, Marker
from caveat.maxent.passes import Rerun


class WeightedMasks(NamedTuple):
    """Masks by marker, (count, n_units) or (count, data, n_units), and weights."""

    masks: dict[str, Any]
    weights: Any


class Strategy(ABC):
    """A way to average the log-likelihood of a model over its masks."""

    @abstractmethod
    def expected(self, rerun: Rerun) -> Array:
        """E_z log q(x | z∘θ), summed over the data; markers are partly random."""


class MaskSet(Strategy):
    """A strategy that averages over a finite set of masks."""

    @abstractmethod
    def choose(self, rerun: Rerun) -> WeightedMasks:
        """The masks of all markers, and the weight of each."""

    @final
    def expected(self, rerun: Rerun) -> Array:
        """The weighted sum of the log-likelihoods under each mask (ledger E60)."""
        masks, weights = self.choose(rerun)

        def log_likelihood(masks: dict[str, Any]) -> Array:
            sites = rerun(masks).values()
            return jnp.asarray(sum(s.weighted(s.log_prob()) for s in sites))

        # E60: ell(θ) = sum_i sum_m π(m) log q(x_i | m∘θ)
        return jnp.dot(jnp.asarray(weights), jax.vmap(log_likelihood)(masks))


@final
@dataclass(frozen=True)
class Enumerate(MaskSet):
    """All masks, each with its probability: exact, for a dozen units or so.

    Parameters
    ----------
    limit : int, default 4096
        Most masks that are allowed; there are 2^units of them.

    Examples
    --------
    >>> Enumerate()
    Enumerate(limit=4096)
    """

    limit: int = 4096

    def __post_init__(self) -> None:
        _validation.positive_int("limit", self.limit)

    def choose(self, rerun: Rerun) -> WeightedMasks:
        """All masks of all markers together (ledger E62)."""
        markers = rerun.markers
        total = sum(len(marker.random) for marker in markers)
        if 2**total > self.limit:
            raise ParameterError(
                f"Enumerate needs at most {self.limit} masks, and {total} units have "
                f"2^{total}. Use Quadrature() for a generalised linear model, "
                f"Fixed(count, seed=0) for any, or raise the limit."
            )
        bits = (np.arange(2**total)[:, None] >> np.arange(total)) & 1
        keep = jnp.concatenate([marker.keep[marker.random] for marker in markers])
        # E62: π(m) = prod_d f_d^(1 - m_d) (1 - f_d)^m_d
        weights = jnp.prod(jnp.where(bits == 1, keep, 1.0 - keep), axis=-1)
        return WeightedMasks(_spread(markers, bits), weights)


@final
@dataclass(frozen=True)
class Balanced(MaskSet):
    """An orthogonal array of masks, for drop rates of 1/2.

    Every pair of units is dropped and kept together as often as independent masks
    would, so the average is exact for likelihoods that are quadratic in the masks
    (Gaussian, linear) and close for smooth ones, with little more masks than units.
    """

    def choose(self, rerun: Rerun) -> WeightedMasks:
        """The rows of a two-level orthogonal array, equally weighted."""
        for marker in rerun.markers:
            rates = _known(marker, "Balanced()")[marker.random]
            if not bool((rates == 0.5).all()):
                raise ParameterError(
                    f"Balanced masks need drop rates of 1/2 (or 0 and 1). Got "
                    f"{np.unique(rates)} at the marker {marker.name!r}; use "
                    f"Fixed(count, seed=0) for other rates."
                )
        total = sum(len(marker.random) for marker in rerun.markers)
        bits = balanced_masks(total)
        return WeightedMasks(_spread(rerun.markers, bits), _equal(len(bits)))


@final
@dataclass(frozen=True)
class Fixed(MaskSet):
    """Random masks, drawn once: the exact posterior of the masks drawn.

    Masks of a larger ``count`` begin with those of a smaller one.

    Parameters
    ----------
    count : int
        Number of masks (for each datum).
    seed : int, torch.Generator or None, default 0
        Of the masks.
    per_datum : bool, default True
        Whether every datum has masks of its own, which makes the error much smaller.
        Markers then need a ``data`` axis.

    Examples
    --------
    >>> Fixed(64, seed=1)
    Fixed(count=64, seed=1, per_datum=True)
    """

    count: int
    seed: Seed = 0
    per_datum: bool = True
    _state: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _validation.positive_int("count", self.count)
        object.__setattr__(self, "_state", as_seed(self.seed))

    def choose(self, rerun: Rerun) -> WeightedMasks:
        """``count`` masks by hash of seed, marker, number and datum (ledger E63)."""
        if self.per_datum:
            _need_all_data(rerun)
        masks = {m.name: self._masks(m) for m in rerun.markers}
        return WeightedMasks(masks, _equal(self.count))

    def _masks(self, marker: Marker) -> Any:
        rates = _known(marker, "Fixed()")
        shape = _mask_shape(marker, per_datum=self.per_datum)
        key = stream_key(self._state, f"maxent {marker.name}")
        # E63: π is replaced by the empirical law of S masks with z_d = [u_d >= f_d]
        return random_uniform(key, range(self.count), shape).numpy() >= rates


@final
@dataclass(frozen=True)
class Fresh(MaskSet):
    """New random masks at every step, for SVI and stochastic-gradient samplers.

    The average of log-likelihoods is unbiased, and so is its gradient. Every datum
    draws its own masks where a marker has a ``data`` axis. Refused inside NUTS and
    other samplers that need a fixed density.

    Parameters
    ----------
    count : int, default 1
        Number of masks of a step.
    """

    count: int = 1

    def __post_init__(self) -> None:
        _validation.positive_int("count", self.count)

    def choose(self, rerun: Rerun) -> WeightedMasks:
        """``count`` masks from a key of NumPyro (ledger E63)."""
        refuse_fresh_masks()
        masks = {m.name: fresh_masks(m, self.count) for m in rerun.markers}
        return WeightedMasks(masks, _equal(self.count))


def fresh_masks(marker: Marker, count: int) -> Array:
    """``count`` masks of a marker, for each datum if it has a data axis."""
    rates = _known(marker, "Random masks")
    key = numpyro.prng_key()
    if key is None:
        raise UnsupportedModelError(
            "Random masks need a random key. Run the model by SVI or Predictive, or "
            "wrap it: numpyro.handlers.seed(model, rng_seed=0)."
        )
    shape = (count, *_mask_shape(marker, per_datum=True))
    return jax.random.uniform(key, shape) >= jnp.asarray(rates)


def _mask_shape(marker: Marker, *, per_datum: bool) -> tuple[int, ...]:
    if per_datum and marker.data is not None:
        return (marker.shape[marker.data], marker.n_units)
    return (marker.n_units,)


def _spread(markers: Sequence[Marker], bits: Any) -> dict[str, Any]:
    """Columns of ``bits`` to the random units; the others never change."""
    masks = {}
    start = 0
    for marker in markers:
        random = marker.random
        mask = np.ones((len(bits), marker.n_units))
        if marker.known:
            mask *= marker.keep > 0.0
        mask[:, random] = bits[:, start : start + len(random)]
        masks[marker.name] = mask
        start += len(random)
    return masks


def _equal(count: int) -> Any:
    return np.full(count, 1.0 / count)


def _known(marker: Marker, what: str) -> Any:
    if not marker.known:
        raise UnsupportedModelError(
            f"{what} cannot follow the drop rate of the marker {marker.name!r}, which "
            f"JAX is tracing: no gradient passes through drawn masks. Make the rate a "
            f"number, or use Enumerate(), ClosedForm() or Quadrature()."
        )
    return marker.rate


def _need_all_data(rerun: Rerun) -> None:
    for marker in rerun.markers:
        if marker.data is None and len(marker.random):
            raise ParameterError(
                f"Masks for every datum need a data axis, and the marker "
                f"{marker.name!r} of shape {marker.shape} names none. Drop the inputs "
                f'instead of the weights, dropout("x", X, rate, units=1, data=0) @ w, '
                f"or share the masks: Fixed(…, per_datum=False)."
            )
    if rerun.subsampled:
        raise UnsupportedModelError(
            "Fixed masks for every datum cannot follow a plate that subsamples: the "
            "same datum would meet other masks. Use Fresh() or per_datum=False."
        )
