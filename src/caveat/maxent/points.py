"""Averages over masks without masks: a few points of the linear predictor.

Where a parameter of the likelihood is affine in the masks, each datum needs only the
law of one number, η = c + sum_k b_k z_k. The average of log q(x | η) is then taken over
points of η: two for which it is exact, or those of Gaussian quadrature.

.. [Wang2013] S. Wang, C. D. Manning. Fast dropout training. ICML 2013.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from caveat import _validation
from caveat.errors import UnsupportedModelError
from caveat.maxent.affine import Affine, Opaque
from caveat.maxent.following import follow
from caveat.maxent.markers import Array, Marker
from caveat.maxent.masks import Strategy
from caveat.maxent.passes import Observation, Rerun

WRAPPERS = (
    dist.Independent,
    dist.distribution.ExpandedDistribution,
    dist.MaskedDistribution,
)


class Points(NamedTuple):
    """Values of η, points first, and the weight of each."""

    values: Array
    weights: Any


@dataclass(frozen=True)
class ObservedSite:
    """An observed site, taken apart into parameters that may depend on masks."""

    name: str
    observation: Observation
    leaves: list[Any]
    structure: Any

    @property
    def base(self) -> Any:
        """The distribution of one element, its parameters replaced by their places."""
        fn = jax.tree_util.tree_unflatten(self.structure, range(len(self.leaves)))
        while isinstance(fn, WRAPPERS):
            fn = fn.base_dist
        return fn

    def masked(self) -> list[int]:
        """Places of the parameters that depend on masks."""
        return [i for i, v in enumerate(self.leaves) if isinstance(v, Affine | Opaque)]

    def log_prob(self, place: int, parameter: Any) -> Array:
        """Of the data, scaled and summed, with the parameter at ``place`` replaced."""
        leaves = list(self.leaves)
        leaves[place] = parameter
        fn = jax.tree_util.tree_unflatten(self.structure, leaves)
        return self.observation.weighted(fn.log_prob(self.observation.value))


class LinearPredictor(Strategy):
    """A strategy for likelihoods with one parameter that is affine in the masks."""

    @abstractmethod
    def points(
        self, site: ObservedSite, place: int, markers: Mapping[str, Marker]
    ) -> Points:
        """Points of the linear predictor whose average gives that over masks."""

    @final
    def expected(self, rerun: Rerun) -> Array:
        """The weighted sum of the log-likelihoods at the points (ledger E60)."""
        markers = {marker.name: marker for marker in rerun.markers}
        sites = _sites(rerun)
        return jnp.asarray(sum(self._of_site(site, markers) for site in sites))

    def _of_site(self, site: ObservedSite, markers: Mapping[str, Marker]) -> Array:
        masked = site.masked()
        if not masked:
            return site.observation.weighted(site.observation.log_prob())
        place = _the_one(site, masked)
        values, weights = self.points(site, place, markers)
        if site.leaves[place].log:
            values = jnp.exp(values)
        at_points = jax.vmap(lambda value: site.log_prob(place, value))(values)
        return jnp.dot(jnp.asarray(weights, at_points.dtype), at_points)


@final
@dataclass(frozen=True)
class ClosedForm(LinearPredictor):
    """Exact and without masks: Gaussian observations, and Poisson with a log link.

    The Gaussian log-density is quadratic in its mean, that of Poisson linear in the
    rate and its log; two points of the linear predictor carry all that matters.

    Examples
    --------
    >>> ClosedForm()
    ClosedForm()
    """

    def points(
        self, site: ObservedSite, place: int, markers: Mapping[str, Marker]
    ) -> Points:
        """mean ± gap, where the gap makes the average exact."""
        eta, base = site.leaves[place], site.base
        if isinstance(base, dist.Normal) and base.loc == place and not eta.log:
            gap = gaussian_gap(eta, markers)
        elif isinstance(base, dist.Poisson) and base.rate == place and eta.log:
            gap = poisson_gap(eta, markers)
        else:
            raise UnsupportedModelError(
                f"ClosedForm() knows Normal(η, scale) and Poisson(exp(η)), η affine in "
                f"the masks. The site {site.name!r} is {type(base).__name__}; use "
                f"Quadrature(), or Enumerate() if it has few units."
            )
        mean = eta.mean(markers)
        return Points(jnp.stack([mean - gap, mean + gap]), np.array([0.5, 0.5]))


@final
@dataclass(frozen=True)
class Quadrature(LinearPredictor):
    """For generalised linear models with many features: η is taken as Gaussian.

    Fast dropout [Wang2013]_: by the central limit theorem η is nearly normal, with
    the mean and variance it has over masks. Deterministic; the error falls with the
    number of features.

    Parameters
    ----------
    nodes : int, default 32
        Of Gauss-Hermite quadrature.

    Examples
    --------
    >>> Quadrature(nodes=20)
    Quadrature(nodes=20)
    """

    nodes: int = 32

    def __post_init__(self) -> None:
        _validation.positive_int("nodes", self.nodes)

    def points(
        self, site: ObservedSite, place: int, markers: Mapping[str, Marker]
    ) -> Points:
        """Gauss-Hermite points of a normal η (ledger E66)."""
        eta = site.leaves[place]
        nodes, weights = np.polynomial.hermite_e.hermegauss(self.nodes)
        std = _root(eta.variance(markers))
        column = nodes.reshape(-1, *[1] * std.ndim)
        # E66: E log q(x | η) ≈ sum_j w_j log q(x | mean + sd t_j)
        return Points(eta.mean(markers) + column * std, weights / weights.sum())


def gaussian_gap(eta: Affine, markers: Mapping[str, Marker]) -> Array:
    """The standard deviation of η, of which a Gaussian needs no more (ledger E64)."""
    # E64: E log N(y; η, s²) = log N(y; E η, s²) - Var η / (2 s²)
    return _root(eta.variance(markers))


def poisson_gap(eta: Affine, markers: Mapping[str, Marker]) -> Array:
    """The gap δ with exp(E η) cosh δ = E exp η (ledger E67)."""
    # E67: E exp η = exp(c) prod_k (f_k + (1 - f_k) exp(b_k))
    excess = jnp.expm1(eta.log_mean_exp(markers) - eta.mean(markers))
    return jnp.log1p(excess + _root(excess * (excess + 2.0)))


def _root(value: Array) -> Array:
    """The square root, with a zero gradient at zero."""
    positive = value > 0.0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, value, 1.0)), 0.0)


def _sites(rerun: Rerun) -> list[ObservedSite]:
    """The observed sites, with their parameters followed through the model."""
    structures: dict[str, Any] = {}

    def parameters(masks: dict[str, Any]) -> list[Any]:
        leaves = []
        for name, site in rerun(masks).items():
            own, structures[name] = jax.tree_util.tree_flatten(site.fn)
            leaves += own
        return leaves

    found = follow(parameters, {m.name: m.n_units for m in rerun.markers})
    observed = rerun({})
    sites = []
    for name, structure in structures.items():
        own, found = found[: structure.num_leaves], found[structure.num_leaves :]
        sites.append(ObservedSite(name, observed[name], own, structure))
    return sites


def _the_one(site: ObservedSite, masked: list[int]) -> int:
    values = [site.leaves[place] for place in masked]
    opaque = [value.operation for value in values if isinstance(value, Opaque)]
    remedy = "Use Enumerate() if the model has few units, or Fixed(count, seed=0)."
    if opaque:
        raise UnsupportedModelError(
            f"The likelihood of {site.name!r} must have a parameter that is affine in "
            f"the masks (logits of Bernoulli, the log of a Poisson rate, loc of "
            f"Normal). It depends on them through {opaque[0]!r}. {remedy}"
        )
    if len(masked) > 1 or not _elementwise(site, values[0]):
        raise UnsupportedModelError(
            f"The likelihood of {site.name!r} ({type(site.base).__name__}) must depend "
            f"on the masks through one number per element. Here several matter at "
            f"once. {remedy}"
        )
    return masked[0]


def _elementwise(site: ObservedSite, value: Affine) -> bool:
    """Whether every element of the parameter belongs to one element of the data."""
    base, shape = site.base, value.constant.shape
    if base.event_shape or len(shape) > len(base.batch_shape):
        return False
    return bool(np.broadcast_shapes(shape, base.batch_shape) == base.batch_shape)
