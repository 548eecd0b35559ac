"""Models into models: the dropout posterior, its naive rival, and how to predict.

.. [Herlau2015] T. Herlau, M. Mørup, M. N. Schmidt. Bayesian dropout. arXiv
   1508.02905, 2015 (paper 002).
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpyro

from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.maxent.markers import Array, Marker, answering
from caveat.maxent.masks import Enumerate, Fresh, MaskSet, Strategy, fresh_masks
from caveat.maxent.passes import Masks, Model, Observation, Rerun, first_run

FACTOR = "expected_log_likelihood"


def posterior(model: Model, *, masks: Strategy | None = None) -> Model:
    """The model whose density is the maximum-entropy dropout posterior [Herlau2015]_.

    log p(θ) = log q(θ) + sum_i E_z log q(x_i | z∘θ) - log Z (ledger E60; eq. 10): the
    prior is that of the model, and the log-likelihood is averaged over masks. With
    all rates 0 it is the model itself. Latent sites, parameters and plates are those
    of the model; its observed sites are replaced by one factor.

    Parameters
    ----------
    model : callable
        A NumPyro model with at least one marker :func:`dropout`.
    masks : Strategy, optional
        How the average is taken: Enumerate() by default, ClosedForm(), Quadrature(),
        Balanced(), Fixed(count) or Fresh(count).

    Returns
    -------
    callable
        A NumPyro model with the arguments of ``model``, for NUTS, SVI or anything
        else (but no Fresh masks for NUTS).

    Examples
    --------
    >>> import jax.numpy as jnp, numpyro, numpyro.distributions as dist
    >>> from caveat import maxent
    >>> def model(x, y):
    ...     w = numpyro.sample("w", dist.Normal(0, 2).expand([2]).to_event(1))
    ...     w = maxent.dropout("w", w, 0.4)
    ...     numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)
    >>> x, y = jnp.array([[1.0, 0.5], [-0.4, 1.2]]), jnp.array([1, 0])
    >>> w = {"w": jnp.array([1.0, -0.5])}
    >>> log_density = numpyro.infer.util.log_density
    >>> round(float(log_density(maxent.posterior(model), (x, y), {}, w)[0]), 3)
    -4.356
    """
    strategy = Enumerate() if masks is None else _strategy(masks, Strategy)

    @functools.wraps(model)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        rerun = first_run(model, args, kwargs)
        if any(len(marker.random) for marker in rerun.markers):
            value = strategy.expected(rerun)
        else:
            value = _total(rerun(_certain(rerun.markers)))
        numpyro.factor(FACTOR, value)
        return rerun.result

    return transformed


def naive(
    model: Model, *, masks: MaskSet | None = None, data: str | None = None
) -> Model:
    """The model with generative dropout, to be compared with :func:`posterior`.

    log p(θ) = log q(θ) + sum_i log E_z q(x_i | z∘θ) - log Z (ledger E61; eq. 3): the
    masks are latent variables of the data and are summed out, so that each sub-model
    answers for the data it explains best.

    Parameters
    ----------
    model : callable
        As for :func:`posterior`.
    masks : MaskSet, optional
        Enumerate() by default; Balanced() or Fixed(count) for the naive posterior
        under these masks.
    data : str, optional
        The plate of the data, whose members have one mask each. It can be left out if
        there is one observed site with one axis.

    Returns
    -------
    callable
        A NumPyro model with the arguments of ``model``.
    """
    strategy = Enumerate() if masks is None else _strategy(masks, MaskSet)
    if isinstance(strategy, Fresh):
        raise ParameterError(
            "naive needs masks that are fixed: a few fresh masks estimate the log of "
            "an average with a bias. Use Enumerate() or Fixed(count, seed=0)."
        )

    @functools.wraps(model)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        rerun = first_run(model, args, kwargs)
        numpyro.factor(FACTOR, _mixture(rerun, strategy, data))
        return rerun.result

    return transformed


def dropped(model: Model) -> Model:
    """The model with masks drawn anew at each run: the literal predictive.

    Each datum draws its own masks where a marker has a ``data`` axis; otherwise a run
    has one mask, which shows whole functions and gives each datum the same law.

    Parameters
    ----------
    model : callable
        A NumPyro model with markers.

    Returns
    -------
    callable
        For :func:`predictive` or ``numpyro.infer.Predictive``.
    """
    return _answered(model, lambda marker: fresh_masks(marker, 1)[0])


def weight_averaged(model: Model) -> Model:
    """The model with each marked value times its keep probability (ledger E68).

    The usual point prediction of dropout; exact for the mean of a linear predictor.

    Parameters
    ----------
    model : callable
        A NumPyro model with markers.

    Returns
    -------
    callable
        For :func:`predictive` or ``numpyro.infer.Predictive``.
    """
    # E68: E_z f(z∘θ) ≈ f((1 - f)∘θ), equal for linear f
    return _answered(model, lambda marker: marker.keep)


def _answered(model: Model, answer: Any) -> Model:
    @functools.wraps(model)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        with answering(answer):
            return model(*args, **kwargs)

    return transformed


def _strategy(masks: Any, kind: type[Any]) -> Any:
    if not isinstance(masks, kind):
        known = "Enumerate(), Balanced() or Fixed(count)"
        if kind is Strategy:
            known = f"ClosedForm(), Quadrature(), Fresh(), {known}"
        raise InputTypeError(f"masks must be {known}. Got {masks!r}.")
    return masks


def _certain(markers: tuple[Marker, ...]) -> Masks:
    """The only masks, when all rates are 0 or 1; rates of 0 leave a value alone."""
    return {m.name: m.keep for m in markers if bool((m.rate > 0.0).any())}


def _total(sites: dict[str, Observation]) -> Array:
    return jnp.asarray(sum(s.weighted(s.log_prob()) for s in sites.values()))


def _mixture(rerun: Rerun, strategy: MaskSet, data: str | None) -> Array:
    masks, weights = strategy.choose(rerun)
    per_datum = jax.vmap(lambda masks: _per_datum(rerun(masks), data))(masks)
    log_weights = jnp.log(jnp.asarray(weights))[:, None]
    # E61: sum_i log sum_m π(m) q(x_i | m∘θ)
    mixed = jax.scipy.special.logsumexp(per_datum + log_weights, axis=0)
    return _scale(rerun({})) * jnp.sum(mixed)


def _per_datum(sites: dict[str, Observation], data: str | None) -> Array:
    """Log-likelihood of each datum, over all its sites; shape (data,)."""
    if data is not None:
        return jnp.asarray(sum(_along(n, s, data) for n, s in sites.items()))
    (first, *others) = [site.log_prob() for site in sites.values()]
    if others or first.ndim > 1:
        raise ShapeError(
            f"naive must know what one datum is. The observed sites {list(sites)} have "
            f"log-probabilities of shape {[first.shape, *[o.shape for o in others]]}; "
            f"put them into a plate and name it, naive(model, data='plate')."
        )
    return first.reshape(-1)


def _along(name: str, site: Observation, data: str) -> Array:
    dims = [plate.dim for plate in site.plates if plate.name == data]
    if not dims:
        raise ParameterError(
            f"data must name a plate around every observed site. {name!r} lies in "
            f"{[plate.name for plate in site.plates]}. Got {data!r}."
        )
    log_prob = jnp.moveaxis(site.log_prob(), dims[0], 0)
    return log_prob.reshape(len(log_prob), -1).sum(-1)


def _scale(sites: dict[str, Observation]) -> Any:
    scales = [1.0 if site.scale is None else site.scale for site in sites.values()]
    if any(jnp.ndim(scale) for scale in scales) or any(s != scales[0] for s in scales):
        raise ShapeError(
            "naive needs one scale for all observed sites of a datum. Got several; "
            "remove handlers.scale around some of them."
        )
    return scales[0]
