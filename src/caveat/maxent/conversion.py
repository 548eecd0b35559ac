"""Posterior samples of a NumPyro model as a ``Predictive`` of Caveat."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import torch
from numpyro import handlers
from torch import Tensor

from caveat._random import Seed, as_seed
from caveat.errors import ParameterError, ShapeError, UnsupportedModelError
from caveat.maxent.markers import Array
from caveat.maxent.passes import Model
from caveat.maxent.points import WRAPPERS
from caveat.predictive import CategoricalPredictive, GaussianPredictive

_BERNOULLI = (dist.BernoulliProbs, dist.BernoulliLogits)
_CATEGORICAL = (dist.CategoricalProbs, dist.CategoricalLogits)


def predictive(
    model: Model,
    samples: Mapping[str, Any],
    *args: Any,
    site: str | None = None,
    seed: Seed = 0,
    **kwargs: Any,
) -> GaussianPredictive | CategoricalPredictive:
    """The predictive of posterior samples, for everything in Caveat that reads one.

    Every sample of the posterior is one draw. What is dropped is said by the model:
    ``dropped(model)`` draws masks (the literal predictive), ``weight_averaged(model)``
    uses their mean; ``model`` itself drops nothing.

    Parameters
    ----------
    model : callable
        A NumPyro model; mostly ``dropped(model)`` or ``weight_averaged(model)``.
    samples : mapping of str to array
        Values of the latent sites, samples first, as ``MCMC.get_samples()`` gives.
    *args, **kwargs
        Of the model, with new inputs; what is to be predicted is left out or None.
    site : str, optional
        The site to predict, if there are several that ``samples`` lacks.
    seed : int, torch.Generator or None, default 0
        Of the masks of ``dropped``.

    Returns
    -------
    GaussianPredictive or CategoricalPredictive
        For a Normal site, or for a Bernoulli or Categorical one; Bernoulli has the
        classes 0 and 1. If the noise differs between samples, each draw has its own.
    """
    arrays = {name: jnp.asarray(value) for name, value in samples.items()}
    n_draws = _count(arrays)
    keys = jax.random.split(jax.random.PRNGKey(as_seed(seed) % 2**32), n_draws)

    def one(key: Array, values: dict[str, Array]) -> dict[str, Array]:
        seeded = handlers.seed(handlers.substitute(model, data=values), key)
        trace = handlers.trace(seeded).get_trace(*args, **kwargs)
        name = _name(trace, arrays, site)
        return _parameters(name, trace[name]["fn"])

    answer = jax.jit(jax.vmap(one))(keys, arrays)
    found = {name: _tensor(value) for name, value in answer.items()}
    if "logits" in found:
        return CategoricalPredictive.from_logits(found["logits"])
    return _regression(found["loc"], found["variance"])


def _count(samples: Mapping[str, Array]) -> int:
    counts = {value.shape[0] if value.ndim else 0 for value in samples.values()}
    if len(counts) != 1 or counts == {0}:
        raise ShapeError(
            f"samples must map latent sites to values with the samples first, equally "
            f"many of each. Got {[(n, v.shape) for n, v in samples.items()]}; pass "
            f"MCMC.get_samples()."
        )
    return counts.pop()


def _name(trace: Any, samples: Mapping[str, Array], name: str | None) -> str:
    candidates = [
        n for n, s in trace.items() if s["type"] == "sample" and n not in samples
    ]
    if name is None and len(candidates) == 1:
        return candidates[0]
    if name is None or name not in candidates:
        raise ParameterError(
            f"site must name what is predicted, one of {candidates}, the sites that "
            f"samples lacks. Got {name!r}."
        )
    return name


def _parameters(name: str, fn: Any) -> dict[str, Array]:
    """Mean and noise variance of a Normal, or the logits of classes."""
    shape = fn.batch_shape + fn.event_shape
    while isinstance(fn, WRAPPERS):
        fn = fn.base_dist
    if isinstance(fn, dist.Normal):
        variance = jnp.broadcast_to(jnp.square(fn.scale), shape)
        return {"loc": jnp.broadcast_to(fn.loc, shape), "variance": variance}
    if isinstance(fn, _BERNOULLI):
        logit = jnp.broadcast_to(fn.logits, shape)
        return {"logits": jnp.stack([jnp.zeros_like(logit), logit], axis=-1)}
    if isinstance(fn, _CATEGORICAL):
        return {"logits": jnp.broadcast_to(fn.logits, (*shape, fn.logits.shape[-1]))}
    raise UnsupportedModelError(
        f"A predictive is made of Normal, Bernoulli or Categorical sites. {name!r} is "
        f"{type(fn).__name__}; draw from it with numpyro.infer.Predictive."
    )


def _tensor(array: Array) -> Tensor:
    return torch.from_numpy(np.array(array))


def _regression(loc: Tensor, variance: Tensor) -> GaussianPredictive:
    is_common = bool((variance == variance[0]).all())
    precision = (variance[0] if is_common else variance).reciprocal()
    return GaussianPredictive.from_draws(loc, precision=precision)
