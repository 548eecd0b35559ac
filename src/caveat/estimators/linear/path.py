"""Weights along a path of drop rates or prior precisions."""

from typing import Any, NamedTuple

import numpy as np

from caveat._validation import drop_rate as valid_rate
from caveat.errors import ParameterError, ShapeError
from caveat.estimators.checking import validate_pair
from caveat.estimators.linear.settings import TOLERANCE, prior_precision
from caveat.maxent.linear import Features, make_intercept
from caveat.maxent.linear.arrays import Array
from caveat.maxent.linear.paths import mean_path, ratio_path


class DropoutPath(NamedTuple):
    """Settings and the posterior means under them.

    Attributes
    ----------
    rates, prior_precisions : array, shape (k,)
        The settings.
    coefs : array, shape (features, k)
        The mean of the weights under each, as columns.
    """

    rates: Array
    prior_precisions: Array
    coefs: Array


def dropout_path(
    X: Any,
    y: Any,
    rates: Any,
    *,
    prior_precision: Any = 1.0,
    prior_ratio: float | None = None,
    fit_intercept: bool = False,
    tol: float = TOLERANCE,
) -> DropoutPath:
    """Posterior mean weights for many drop rates, in the manner of ``lasso_path``.

    Parameters
    ----------
    X : array or sparse matrix, shape (rows, features)
        Covariates.
    y : array, shape (rows,)
        Responses.
    rates : float or array, shape (k,)
        Drop rates f in [0, 1).
    prior_precision : float or array, shape (k,)
        lambda0; goes together with ``rates``, so that one rate and many precisions,
        many rates and one precision, or as many of both can be given.
    prior_ratio : float, optional
        Takes the place of ``prior_precision``: lambda0 = ratio f (1 - f). Then one
        Krylov space serves all rates (ledger E50). Rates must be above 0.
    fit_intercept : bool, default False
        Whether there is an undropped intercept; the default is that of
        ``lasso_path``.
    tol : float
        Relative residual of what is solved by iteration.

    Returns
    -------
    DropoutPath
        ``rates`` and ``prior_precisions`` of shape (k,), and ``coefs`` of shape
        (features, k): mu, of which (1 - f) mu predicts.

    Examples
    --------
    >>> from caveat.estimators import dropout_path
    >>> X = [[1, 0.5], [-0.4, 1.2], [0.8, -1], [0.3, 0.9]]
    >>> path = dropout_path(X, [1.2, 0.1, 0.4, 0.9], [0.0, 0.4], prior_precision=0.5)
    >>> path.coefs.round(6)
    array([[0.814665, 0.677269],
           [0.38637 , 0.308595]])
    """
    matrix, response = validate_pair(
        X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True
    )
    features, y = Features(matrix), np.asarray(response, dtype=np.float64)
    intercept = make_intercept(fit_intercept, "zero")
    if prior_ratio is not None:
        chosen, precisions = _with_ratio(rates, prior_ratio)
        coefs = ratio_path(
            features, y, chosen, prior_ratio=prior_ratio, intercept=intercept, tol=tol
        )
    else:
        chosen, precisions = _together(rates, prior_precision)
        settings = list(zip(chosen.tolist(), precisions.tolist(), strict=True))
        coefs = mean_path(features, y, settings, intercept=intercept, tol=tol)
    return DropoutPath(chosen, precisions, coefs)


def _with_ratio(rates: Any, ratio: Any) -> tuple[Array, Array]:
    chosen, _ = _together(rates, 0.0)
    if not (chosen > 0.0).all():
        raise ParameterError(
            f"With prior_ratio every rate must be above 0, as lambda0 would be 0 at "
            f"f = 0. Got {chosen.min()}; pass prior_precision instead."
        )
    return chosen, prior_precision(ratio) * chosen * (1.0 - chosen)


def _together(rates: Any, precisions: Any) -> tuple[Array, Array]:
    pair = [np.asarray(a, dtype=np.float64) for a in (rates, precisions)]
    try:
        chosen, known = np.broadcast_arrays(*map(np.atleast_1d, pair))
    except ValueError:
        chosen, known = pair
    if chosen.shape != known.shape or chosen.ndim != 1 or not len(chosen):
        raise ShapeError(
            f"rates and prior_precision must be numbers or arrays of one length. "
            f"Got the shapes {pair[0].shape} and {pair[1].shape}."
        )
    for rate, precision in zip(chosen, known, strict=True):
        valid_rate(float(rate), where="rates")
        prior_precision(float(precision))
    return chosen.copy(), known.copy()
