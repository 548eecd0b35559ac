"""From what a user writes to the parts of a linear model, and the checks on the way."""

import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from caveat.errors import CaveatWarning, ParameterError
from caveat.estimators.checking import validate_data
from caveat.maxent.linear import (
    Design,
    Features,
    LinearPosterior,
    VariancePrior,
    fit_posterior,
    make_intercept,
    make_noise,
)
from caveat.maxent.linear.arrays import Array, Matrix, canonical
from caveat.maxent.linear.paths import EXACT_UP_TO
from caveat.maxent.linear.posterior import JEFFREYS

SOLVERS = ("auto", "primal", "dual", "krylov")
_AWAY = 25.0  # times the squares from its mean, the squares of a column from 0
_FAR = 10.0  # times what rows say of a weight, that dropping says against it
TOLERANCE = 1e-10  # relative residual of means found by conjugate gradients


def training_data(
    estimator: Any, X: Any, y: Any, **checks: Any
) -> tuple[Features, Array]:
    """Checked covariates (dense or CSR, float64) and response."""
    matrix, response = validate_data(
        estimator,
        X,
        y,
        accept_sparse="csr",
        dtype=np.float64,
        y_numeric=True,
        **checks,
    )
    return Features(matrix), np.asarray(response, dtype=np.float64)


def new_matrix(estimator: Any, X: Any) -> Matrix:
    """Checked rows to predict for."""
    return canonical(
        validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, reset=False)
    )


def prior_precision(value: Any) -> float:
    """lambda0, finite and at least 0."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterError(
            f"prior_precision must be a number of at least 0. "
            f"Got {value!r} of type {type(value).__name__}."
        )
    if not (np.isfinite(float(value)) and float(value) >= 0.0):
        raise ParameterError(
            f"prior_precision must be finite and at least 0. Got {value}."
        )
    return float(value)


def variance_prior(value: Any) -> VariancePrior:
    """(a0, b0) of the inverse-gamma prior; None is Jeffreys' prior."""
    if value is None:
        return JEFFREYS
    if not isinstance(value, Sequence) or len(value) != 2:
        raise ParameterError(
            f"variance_prior must be None (Jeffreys) or a pair (shape, rate). "
            f"Got {value!r}."
        )
    shape, rate = map(float, value)
    if not (shape > 0.0 and rate > 0.0 and np.isfinite([shape, rate]).all()):
        raise ParameterError(
            f"Both numbers of variance_prior must be above 0. Got {value!r}; pass None "
            f"for Jeffreys' prior."
        )
    return VariancePrior(shape, rate)


def make_design(
    features: Features, estimator: Any, *, drop_rate: Any, precision: Any
) -> Design:
    """The design that the parameters of an estimator describe."""
    noise = make_noise(
        drop_rate,
        features.n_features,
        kind=estimator.noise,
        groups=estimator.groups,
    )
    intercept = make_intercept(estimator.fit_intercept, estimator.drop_to)
    return Design(features, noise, prior_precision(precision), intercept)


def fit_with(
    design: Design, y: Array, *, solver: str, prior: VariancePrior
) -> LinearPosterior:
    """The posterior, by the solver that the user asks for or that suits the shape."""
    if solver not in SOLVERS:
        raise ParameterError(
            f"solver must be one of {', '.join(map(repr, SOLVERS))}. Got {solver!r}."
        )
    if solver in ("dual", "krylov") and not design.whitening.is_proper:
        raise ParameterError(
            f"solver={solver!r} needs a proper prior for every weight. Set "
            f"prior_precision above 0, or use solver='auto'."
        )
    _warn_if_inert(design)
    _warn_if_far(design)
    chosen = _suited(design) if solver == "auto" else solver
    found = fit_posterior(design, y, prior=prior, solver=chosen, tol=TOLERANCE)
    return warned_without_noise(found)


_NO_NOISE = """The response is fitted without any error (it is constant, or 0), so the
noise variance is 0 and predictions are points without uncertainty. If that is not what
is meant, give the noise a prior: variance_prior=(shape, rate)."""


def warned_without_noise(posterior: LinearPosterior) -> LinearPosterior:
    """The posterior; a warning if it leaves no noise at all."""
    if posterior.rate == 0.0:
        warnings.warn(_NO_NOISE, CaveatWarning, stacklevel=3)
    return posterior


def _warn_if_inert(design: Design) -> None:
    n_inert = int(design.whitening.inert.sum())
    if n_inert:
        warnings.warn(
            f"{n_inert} of {design.features.n_features} features are constant in the "
            f"training data and have no prior, so they are left out of the model "
            f"(weight 0). Set prior_precision above 0 to keep them.",
            CaveatWarning,
            stacklevel=3,
        )


def _warn_if_far(design: Design) -> None:
    """Of columns far from 0 dropping leaves nothing, and their share looks like noise.

    What rows say of a weight is r² S with the centred squares S, and what dropping says
    against it c Q with those from 0 (ledger E40).
    """
    features, noise = design.features, design.noise
    if not design.intercept.fitted or design.intercept.to_mean:
        return
    known = np.square(noise.mean) * features.centred_squares
    against = noise.variance * features.squares
    is_away = features.squares > _AWAY * features.centred_squares
    far = (known > 0) & is_away & (against > _FAR * known)
    if far.any():
        column = int(np.argmax(np.where(far, against / np.where(far, known, 1.0), 0.0)))
        mean = features.means[column]
        std = np.sqrt(features.centred_squares[column] / features.n_rows)
        warnings.warn(
            f"{int(far.sum())} of {features.n_features} features lie so far from 0 for "
            f"their spread that drop_to='zero' leaves less than a tenth of their "
            f"weights, and what they say becomes noise: column {column} is {mean:.4g} "
            f"with a standard deviation of {std:.2g}. Pass drop_to='mean', or centre "
            f"X.",
            CaveatWarning,
            stacklevel=3,
        )


def _suited(design: Design) -> str:
    """Exact for small data; else conjugate gradients, and Cholesky when needed."""
    features = design.features
    small = min(features.n_rows, features.n_features) <= EXACT_UP_TO
    return "exact" if small or not design.whitening.is_proper else "krylov"
