"""Averages over masks without masks, by the law of the linear predictor.

Where a parameter of the likelihood is affine in the masks, each datum needs only the
law of one number, η = c + sum_k b_k z_k. The average of log q(x | η) then follows from
its second derivative, where that is exact, or from points of Gaussian quadrature.

.. [Wang2013] S. Wang, C. D. Manning. Fast dropout training. ICML 2013.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.distributions import constraints

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


@dataclass(frozen=True)
class SiteLikelihood:
    """log q(x | η) of a site as a function of its linear predictor, elements summed."""

    site: ObservedSite
    place: int

    @property
    def eta(self) -> Affine:
        """The linear predictor, affine in the masks."""
        found: Affine = self.site.leaves[self.place]
        return found

    def __call__(self, eta: Array) -> Array:
        value = jnp.exp(eta) if self.eta.log else eta
        return self.site.log_prob(self.place, value)

    def derivatives(self, eta: Array, highest: int) -> list[Array]:
        """The second to the ``highest`` derivative by η, of each element.

        Elements do not depend on each other, so a direction of ones gives them all.
        """
        function, found = jax.grad(self), []
        for _ in range(highest - 1):
            function = partial(_along_ones, function)
            found.append(function(eta))
        return found


def _along_ones(function: Callable[[Array], Array], eta: Array) -> Array:
    slope: Array = jax.jvp(function, (eta,), (jnp.ones_like(eta),))[1]
    return slope


class LinearPredictor(Strategy):
    """A strategy for likelihoods with one parameter that is affine in the masks."""

    @abstractmethod
    def average(
        self, likelihood: SiteLikelihood, markers: Mapping[str, Marker]
    ) -> Array:
        """E log q(x | η) over the masks, summed over the data of a site."""

    @final
    def expected(self, rerun: Rerun) -> Array:
        """The sum of the averages of all observed sites (ledger E60)."""
        markers = {marker.name: marker for marker in rerun.markers}
        sites = _sites(rerun)
        return jnp.asarray(sum(self._of_site(site, markers) for site in sites))

    def _of_site(self, site: ObservedSite, markers: Mapping[str, Marker]) -> Array:
        masked = site.masked()
        if not masked:
            return site.observation.weighted(site.observation.log_prob())
        return self.average(SiteLikelihood(site, _the_one(site, masked)), markers)


@final
@dataclass(frozen=True)
class ClosedForm(LinearPredictor):
    """Exact and without masks: Gaussian observations, and Poisson with a log link.

    The Gaussian log-density is quadratic in its mean, that of Poisson linear in the
    rate and its log: what masks add is a multiple of the second derivative, and smooth
    in the weights wherever they are, at 0 too.

    Examples
    --------
    >>> ClosedForm()
    ClosedForm()
    """

    def average(
        self, likelihood: SiteLikelihood, markers: Mapping[str, Marker]
    ) -> Array:
        """log q at the mean of η, and what the spread of η adds."""
        site, eta, base = likelihood.site, likelihood.eta, likelihood.site.base
        place = likelihood.place
        if isinstance(base, dist.Normal) and base.loc == place and not eta.log:
            spread = gaussian_spread(eta, markers)
        elif isinstance(base, dist.Poisson) and base.rate == place and eta.log:
            spread = poisson_spread(eta, markers)
        else:
            raise UnsupportedModelError(
                f"ClosedForm() knows Normal(η, scale) and Poisson(exp(η)), η affine in "
                f"the masks. The site {site.name!r} is {type(base).__name__}; use "
                f"Quadrature(), or Enumerate() if it has few units."
            )
        mean = eta.mean(markers)
        (second,) = likelihood.derivatives(mean, 2)
        return likelihood(mean) + jnp.sum(spread * second)


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

    def average(
        self, likelihood: SiteLikelihood, markers: Mapping[str, Marker]
    ) -> Array:
        """Over Gauss-Hermite points of a normal η (ledger E66).

        The points move with the standard deviation of η, which has a kink where the
        weights are 0; their average has none. Where the variance is next to nothing
        the average is therefore taken from the derivatives of log q.
        """
        _check_range(likelihood.site, likelihood.place, log=likelihood.eta.log)
        nodes, weights = np.polynomial.hermite_e.hermegauss(self.nodes)
        weights = weights / weights.sum()
        mean, variance = likelihood.eta.mean(markers), likelihood.eta.variance(markers)
        second, third, fourth = likelihood.derivatives(mean, 4)
        tiny = _is_tiny(variance, second, third, fourth)
        std = _root(jnp.where(tiny, 0.0, variance))
        column = nodes.reshape(-1, *[1] * std.ndim)
        at_points = jax.vmap(likelihood)(mean + column * std)
        # E66: E log q(x | η) ≈ sum_j w_j log q(x | mean + sd t_j)
        total = jnp.dot(jnp.asarray(weights, at_points.dtype), at_points)
        rest = jnp.where(tiny, variance, 0.0)
        square, quartic = (float(weights @ nodes**k) for k in (2, 4))
        terms = square * rest * second / 2.0 + quartic * rest**2 * fourth / 24.0
        return total + jnp.sum(terms)


def _check_range(site: ObservedSite, place: int, *, log: bool) -> None:
    """The likelihood must be defined wherever a normal η may lie."""
    base = site.base
    names = [n for n in base.arg_constraints if vars(base).get(n) == place]
    if names and not _is_defined(base.arg_constraints[names[0]], log=log):
        given = f"{names[0]}={'exp(η)' if log else 'η'}"
        raise UnsupportedModelError(
            f"Quadrature() takes η as normal, so it may be any number. {given} of "
            f"{type(base).__name__} at the site {site.name!r} may not; use a link "
            f"(logits of Bernoulli, the exponential of η for a rate or a scale), or "
            f"Enumerate() if the model has few units, or Fixed(count, seed=0)."
        )


def _is_defined(constraint: Any, *, log: bool) -> bool:
    """Whether a parameter may be any number, or any positive one if ``log``."""
    if isinstance(constraint, type(constraints.dependent)):
        return False
    positive = np.geomspace(1e-6, 1e6, 13)
    values = positive if log else np.concatenate([-positive, [0.0], positive])
    return bool(np.all(constraint(values)))


def gaussian_spread(eta: Affine, markers: Mapping[str, Marker]) -> Array:
    """Half the variance of η, of which a Gaussian needs no more (ledger E64)."""
    # E64: E log N(y; η, s²) = log N(y; E η, s²) - Var η / (2 s²)
    return 0.5 * eta.variance(markers)


def poisson_spread(eta: Affine, markers: Mapping[str, Marker]) -> Array:
    """By how much E exp η is above exp(E η), relative to it (ledger E67)."""
    # E67: E exp η = exp(c) prod_k (f_k + (1 - f_k) exp(b_k))
    return jnp.expm1(eta.log_mean_exp(markers) - eta.mean(markers))


def _is_tiny(variance: Array, second: Array, third: Array, fourth: Array) -> Array:
    """Where two terms of a series in the variance say all, to rounding.

    That is far below the square of the length over which log q bends, by its third and
    fourth derivatives; and below 1, should they say nothing.
    """
    limit = float(np.finfo(variance.dtype).eps) ** 0.5
    bends = variance * (jnp.abs(fourth * second) + third**2) <= limit * second**2
    return (variance <= 0.0) | (bends & (second != 0.0) & (variance <= limit))


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
