"""The numbers behind the figure, one record per panel, method and strength."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from caveat.papers.misspecification.simulation import (
    DROPOUT_PRIOR,
    METHODS,
    STRENGTHS,
    Array,
    Part,
    Sums,
    drop_rates,
)


@dataclass(frozen=True)
class Record:
    """Mean test error of one method with one amount of regularisation.

    Attributes
    ----------
    condition : str
    n_features, n_sets : int
    method : str
        ``"ridge"``, ``"dropout"``, or ``"dropout, undropped"``.
    strength : float
        lambda0 of ridge; n f / (1 - f) of dropout.
    drop_rate, prior_precision : float
    error, error_se : float
        Squared test error, mean over data sets, and its standard error.
    gap, gap_se : float
        The same of the difference to ridge with the true prior, on the same data sets.
    """

    condition: str
    n_features: int
    n_sets: int
    method: str
    strength: float
    drop_rate: float
    prior_precision: float
    error: float
    error_se: float
    gap: float
    gap_se: float


def summarise(parts: Sequence[Part], sums: Sequence[Sums]) -> list[Record]:
    """The records of one panel from the sums of all its parts."""
    n_sets = sum(part.n_sets for part in parts)
    total = Sums(*(np.sum(arrays, axis=0) for arrays in zip(*sums, strict=True)))
    error = total.error / n_sets, _error_of(total.error, total.error_squared, n_sets)
    gap = total.gap / n_sets, _error_of(total.gap, total.gap_squared, n_sets)
    rates = drop_rates(STRENGTHS)
    return [
        Record(
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
