"""Mean predictions for very many small data sets at once.

A simulation study fits thousands of data sets of the same size. All of them go through
LAPACK in one call per chunk, in the smaller of the primal and dual forms.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from caveat._validation import drop_rate as valid_rate
from caveat.errors import ParameterError, ShapeError
from caveat.maxent.linear.arrays import Array

_CHUNK = 1 << 21  # numbers in the stacked matrices of one chunk
_MANY = 10  # ridge settings from which an eigendecomposition is cheaper than solving


def batched_predictions(
    x: Array,
    y: Array,
    x_new: Array,
    settings: Sequence[tuple[float, float]],
) -> Array:
    """Weight-averaged predictions of many data sets under many settings.

    (1 - f) x'mu for each, with the mu of paper 002 eq. 14 (ledger E41); no intercept.
    A drop rate of 0 is Bayesian ridge regression; many such settings share one
    eigendecomposition per data set.

    Parameters
    ----------
    x : array, shape (sets, n, p)
        Covariates.
    y : array, shape (sets, n)
        Responses.
    x_new : array, shape (sets, m, p)
        Where to predict.
    settings : sequence of (drop_rate, prior_precision)
        Each with a drop rate in [0, 1) and a precision above 0.

    Returns
    -------
    array, shape (settings, sets, m)

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[[1, 0.5], [-0.4, 1.2], [0.8, -1], [0.3, 0.9]]])
    >>> y = np.array([[1.2, 0.1, 0.4, 0.9]])
    >>> new = np.array([[[0.7, -1.1]]])
    >>> batched_predictions(x, y, new, [(0.4, 0.5)]).round(9).ravel()
    array([0.08078049])
    """
    x, y, x_new = (np.asarray(a, dtype=np.float64) for a in (x, y, x_new))
    pairs = _checked(x, y, x_new, settings)
    many = sum(rate == 0.0 for rate, _ in pairs) >= _MANY
    answers = np.empty((len(pairs), *x_new.shape[:2]))
    for sets in _chunks(x):
        chunk = _Chunk(x[sets], y[sets], x_new[sets])
        for number, (rate, precision) in enumerate(pairs):
            shared = many and rate == 0.0
            predict = chunk.predict_ridge if shared else chunk.predict_dropout
            answers[number, sets] = predict(rate, precision)
    return answers


class _Chunk:
    """Some of the data sets, with what all settings share."""

    def __init__(self, x: Array, y: Array, x_new: Array) -> None:
        self._x, self._y, self._x_new = x, y[..., None], x_new
        self._squares = np.square(x).sum(1)[:, None, :]  # shape: (sets, 1, p)
        self._wide = x.shape[2] > x.shape[1]

    def predict_dropout(self, rate: float, precision: float) -> Array:
        """By one solve per data set."""
        keep = 1.0 - rate
        # E40: A = lambda0 I + f (1 - f) Lambda1
        effective = precision + rate * keep * self._squares
        solve = self._dual if self._wide else self._primal
        return keep * solve(keep, effective)

    def _dual(self, keep: float, effective: Array) -> Array:
        """x'mu by the n by n system (ledger E43)."""
        scaled = self._x / effective
        gram = keep * keep * (scaled @ self._x.transpose(0, 2, 1))
        gram[:, np.arange(gram.shape[1]), np.arange(gram.shape[1])] += 1.0
        alpha = np.linalg.solve(gram, self._y)
        weights = keep * (scaled.transpose(0, 2, 1) @ alpha)
        return (self._x_new @ weights)[..., 0]

    def _primal(self, keep: float, effective: Array) -> Array:
        """x'mu by the p by p system (ledger E41)."""
        precision = keep * keep * self._scatter
        p = precision.shape[1]
        precision[:, np.arange(p), np.arange(p)] += effective[:, 0]
        # E41: mu = (1 - f) Lambda^-1 X'y
        weights = np.linalg.solve(precision, keep * self._moment)
        return (self._x_new @ weights)[..., 0]

    @cached_property
    def _scatter(self) -> Array:
        return self._x.transpose(0, 2, 1) @ self._x

    @cached_property
    def _moment(self) -> Array:
        return self._x.transpose(0, 2, 1) @ self._y

    @cached_property
    def _eigen(self) -> tuple[Array, Array, Array]:
        return self._eigen_dual() if self._wide else self._eigen_primal()

    def predict_ridge(self, _rate: float, precision: float) -> Array:
        """By one eigendecomposition per data set for all precisions."""
        values, right, left = self._eigen
        return (left @ (right / (values[..., None] + precision)))[..., 0]

    def _eigen_dual(self) -> tuple[Array, Array, Array]:
        turned = self._x.transpose(0, 2, 1)
        values, vectors = np.linalg.eigh(self._x @ turned)
        right = vectors.transpose(0, 2, 1) @ self._y
        return values, right, (self._x_new @ turned) @ vectors

    def _eigen_primal(self) -> tuple[Array, Array, Array]:
        values, vectors = np.linalg.eigh(self._scatter)
        right = vectors.transpose(0, 2, 1) @ self._moment
        return values, right, self._x_new @ vectors


def _chunks(x: Array) -> Iterator[slice]:
    step = max(_CHUNK // (x.shape[1] * x.shape[2]), 1)
    return (slice(i, i + step) for i in range(0, len(x), step))


def _checked(
    x: Array, y: Array, x_new: Array, settings: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    fits = x.ndim == 3 and y.shape == x.shape[:2] and x_new.ndim == 3
    if not (fits and (len(x), x.shape[2]) == (len(x_new), x_new.shape[2])):
        raise ShapeError(
            f"x, y and x_new must have the shapes (sets, n, p), (sets, n) and "
            f"(sets, m, p). Got {x.shape}, {y.shape} and {x_new.shape}."
        )
    for rate, precision in settings:
        valid_rate(rate, where="settings")
        if not precision > 0.0:
            raise ParameterError(
                f"A prior precision must be above 0. Got {precision} in settings."
            )
    return [(float(rate), float(precision)) for rate, precision in settings]
