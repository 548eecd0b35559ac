"""Predictives and linear posteriors as InferenceData, for the plots of arviz."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from caveat import _validation as check
from caveat._optional import require
from caveat._random import Seed, as_seed
from caveat.errors import InputTypeError
from caveat.maxent.linear import LinearPosterior
from caveat.predictive import Predictive

__all__ = ["from_posterior", "from_predictive"]


def from_predictive(
    predictive: Predictive,
    y: Any = None,
    *,
    n_observations: int = 1000,
    seed: Seed = 0,
    name: str = "y",
) -> Any:
    """New observations of a predictive, beside what was observed.

    Parameters
    ----------
    predictive : Predictive
        Of any kind.
    y : array, optional
        What was observed, one for each row.
    n_observations : int
        How many new observations of each row.
    seed : int, torch.Generator or None
        Of them.
    name : str
        Of what is predicted.

    Returns
    -------
    arviz.InferenceData
        ``posterior_predictive`` of shape (1 chain, n_observations, rows), and with
        ``y`` ``observed_data`` and ``log_likelihood`` (of the predictive, per row).
        Rows are sampled one by one: what they have in common is in
        ``predictive.draws``.
    """
    if not isinstance(predictive, Predictive):
        raise InputTypeError(
            f"predictive must be a Predictive. Got {type(predictive).__name__}."
        )
    drawn = predictive.sample(n_observations, seed=seed)
    new = drawn.reshape(n_observations, len(predictive), -1).squeeze(-1)
    groups = {"posterior_predictive": {name: new[None].numpy(force=True)}}
    if y is not None:
        found = predictive.log_prob(_shaped(y, drawn))  # checks y as well
        seen = np.asarray(check.as_tensor(y)).reshape(new.shape[1:])
        groups["observed_data"] = {name: seen}
        log_probs = found.reshape(1, 1, len(predictive), -1).squeeze(-1)
        groups["log_likelihood"] = {name: log_probs.numpy(force=True)}
    return _made(groups, {name: ["row", "output"][: new.ndim - 1]})


def from_posterior(
    posterior: LinearPosterior,
    *,
    names: Sequence[str] | None = None,
    n_draws: int = 1000,
    seed: Seed = 0,
) -> Any:
    """Draws of the weights of a linear model.

    Parameters
    ----------
    posterior : LinearPosterior
        ``posterior_`` of a fitted ``BayesianDropoutRegression``.
    names : sequence of str, optional
        Of the features; by default their numbers.
    n_draws : int
        How many.
    seed : int, torch.Generator or None
        Of them.

    Returns
    -------
    arviz.InferenceData
        ``posterior`` with ``weights`` (by feature), ``intercept`` and ``variance``.
    """
    if not isinstance(posterior, LinearPosterior):
        raise InputTypeError(
            f"posterior must be a LinearPosterior, the posterior_ of a fitted linear "
            f"model. Got {type(posterior).__name__}."
        )
    number = check.positive_int("n_draws", n_draws)
    found = posterior.sample(number, np.random.default_rng(as_seed(seed)))
    n_features = found.weights.shape[1]
    own = check.class_names(names, n_features) if names is not None else None
    groups = {"posterior": {k: v[None] for k, v in found._asdict().items()}}
    features = range(n_features) if own is None else own
    return _made(groups, {"weights": ["feature"]}, {"feature": list(features)})


def _shaped(y: Any, drawn: Any) -> Any:
    """A column of observations in the shape of a row of the predictive."""
    seen = check.as_tensor(y)
    fits = getattr(seen, "shape", None) == drawn.shape[1:2] and drawn.ndim == 3
    return seen[:, None] if fits and drawn.shape[2] == 1 else seen


def _made(
    groups: Mapping[str, Any],
    dims: Mapping[str, Sequence[str]],
    coords: Mapping[str, Sequence[Any]] | None = None,
) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # arviz, of its own future
        arviz = require("arviz", extra="arviz")
        return arviz.from_dict(**groups, dims=dims, coords=coords)
