"""Data sets with a wrong model, and the errors of ridge and dropout on them.

How paper 002 is read: X = R L with R standard normal, 40 by 10 (20 rows to fit, 20 to
test), and L normal, 10 by p, its columns scaled to unit length; y = X w + e with
w ~ N(0, 1) and e ~ N(0, 1), which is lambda0 = sigma^2 = 1. All of these are drawn anew
for every data set. Then

- default: nothing else;
- junk features: all but the first 10 weights are 0;
- covariate shift: after y is drawn, each column of X, fit and test rows alike, is
  multiplied by its own standard normal number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caveat.maxent.linear.batched import batched_predictions

Array = NDArray[np.float64]

CONDITIONS = ("default", "junk features", "covariate shift")
N_FEATURES = (10, 20, 40)
N_ROWS = 20
RANK = 10
DROPOUT_PRIOR = 1e-3  # the wrong lambda0 that the paper gives to dropout
STRENGTHS: Array = 10.0 ** np.linspace(-2.0, 2.0, 17)
TRUE_PRIOR = 8  # where STRENGTHS is 1, the lambda0 of the data
PER_PART = 1_000  # data sets; larger parts do not fit into the cache
METHODS = ("ridge", "dropout", "dropout, undropped")


def drop_rates(strengths: Array) -> Array:
    """f with n f / (1 - f) = strength: as strong as ridge on columns of unit size.

    With lambda0 = 0 dropout is ridge with the penalty f / (1 - f) times the sum of
    squares of each column, which is n on average without a shift.
    """
    return strengths / (N_ROWS + strengths)


@dataclass(frozen=True)
class DataPart:
    """Some of the data sets of one panel of the figure."""

    condition: str
    n_features: int
    number: int  # of this part; the seed of its data
    n_sets: int


def parts(condition: str, n_features: int, n_sets: int) -> list[DataPart]:
    """The parts of a panel."""
    return [
        DataPart(condition, n_features, number, min(PER_PART, n_sets - start))
        for number, start in enumerate(range(0, n_sets, PER_PART))
    ]


class DataSets(NamedTuple):
    """Many data sets: rows to fit and rows to test."""

    x: Array  # shape: (sets, 20, p)
    y: Array  # shape: (sets, 20)
    x_test: Array
    y_test: Array


class Sums(NamedTuple):
    """Sums over data sets, shape (methods, strengths); they add up over parts.

    The gap of a data set is its error less that of ridge with the true prior.
    """

    error: Array
    error_squared: Array
    gap: Array
    gap_squared: Array


def draw_sets(part: DataPart) -> DataSets:
    """The data sets of a part, the same ones whenever it is asked for."""
    seed = [part.n_features, CONDITIONS.index(part.condition), part.number]
    rng = np.random.default_rng(seed)
    p, n_sets = part.n_features, part.n_sets
    mixing = rng.standard_normal((n_sets, RANK, p))
    mixing /= np.linalg.norm(mixing, axis=1, keepdims=True)
    x = rng.standard_normal((n_sets, 2 * N_ROWS, RANK)) @ mixing
    weights = rng.standard_normal((n_sets, p, 1))
    if part.condition == "junk features":
        weights[:, RANK:] = 0.0
    y = (x @ weights)[..., 0] + rng.standard_normal((n_sets, 2 * N_ROWS))
    if part.condition == "covariate shift":
        x *= rng.standard_normal((n_sets, 1, p))
    fit, test = slice(None, N_ROWS), slice(N_ROWS, None)
    return DataSets(x[:, fit], y[:, fit], x[:, test], y[:, test])


def run_part(part: DataPart) -> Sums:
    """Fit all methods and strengths to the data sets of a part."""
    errors = squared_errors(draw_sets(part))
    gaps = errors - errors[0, TRUE_PRIOR]
    return Sums(*(a.sum(2) for a in (errors, errors**2, gaps, gaps**2)))


def squared_errors(data: DataSets) -> Array:
    """Mean squared test error, shape (methods, strengths, sets).

    Ridge has lambda0 = strength; dropout has the wrong lambda0 and the drop rate of
    that strength, and predicts (1 - f) x'mu, or undropped x'mu.
    """
    rates = drop_rates(STRENGTHS)
    settings = [(0.0, strength) for strength in STRENGTHS.tolist()]
    settings += [(rate, DROPOUT_PRIOR) for rate in rates.tolist()]
    found = batched_predictions(data.x, data.y, data.x_test, settings)
    ridge, dropout = np.split(found, 2)
    undropped = dropout / (1.0 - rates)[:, None, None]
    predicted = np.stack([ridge, dropout, undropped])
    return np.square(predicted - data.y_test).mean(-1)


@dataclass(frozen=True)
class ModelRecord:
    """Mean test error of one method with one amount of regularisation."""

    condition: str
    n_features: int
    n_sets: int
    method: str
    strength: float  # lambda0 of ridge; n f / (1 - f) of dropout
    drop_rate: float
    prior_precision: float
    error: float  # squared test error, mean over data sets
    error_se: float
    gap: float  # difference to ridge with the true prior on the same data sets
    gap_se: float


def summarise(parts: Sequence[DataPart], sums: Sequence[Sums]) -> list[ModelRecord]:
    """The records of one panel from the sums of all its parts."""
    n_sets = sum(part.n_sets for part in parts)
    total = Sums(*(np.sum(arrays, axis=0) for arrays in zip(*sums, strict=True)))
    error = total.error / n_sets, _error_of(total.error, total.error_squared, n_sets)
    gap = total.gap / n_sets, _error_of(total.gap, total.gap_squared, n_sets)
    rates = drop_rates(STRENGTHS)
    return [
        ModelRecord(
            parts[0].condition,
            parts[0].n_features,
            n_sets,
            name,
            float(strength),
            float(rates[k]) if method else 0.0,
            DROPOUT_PRIOR if method else float(strength),
            *(float(array[method, k]) for array in (*error, *gap)),
        )
        for method, name in enumerate(METHODS)
        for k, strength in enumerate(STRENGTHS)
    ]


def _error_of(sums: Array, squares: Array, count: int) -> Array:
    """Standard error of a mean."""
    variance = np.maximum(squares - sums**2 / count, 0.0) / (count - 1)
    return np.asarray(np.sqrt(variance / count))
