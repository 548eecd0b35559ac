"""The literal dropped-out predictive: a mixture of Student-t over masks.

The response of x under a mask m is Student-t with location x'(m o mu); the predictive
averages over masks. A feature that is 0 in x needs no mask, so rows with few non-zeros
have few distinct components and all can be taken; else masks are drawn.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from caveat.maxent.linear.arrays import Array, Matrix, is_sparse
from caveat.maxent.linear.design import Design
from caveat.maxent.linear.noise import BernoulliFeatureNoise
from caveat.maxent.linear.posterior import LinearPosterior
from caveat.maxent.linear.rows import ShiftedRows

MOST_UNITS = 10  # masks of so many features are enumerated: 2^10 components


class RowComponents(NamedTuple):
    """Mixture components of each row, all arrays of shape (components, rows).

    ``n_draws`` is the number of masks drawn, 0 if all were enumerated.
    """

    locations: Array
    leverages: Array
    log_weights: Array
    n_draws: int


def dropped_components(
    posterior: LinearPosterior,
    matrix: Matrix,
    *,
    n_draws: int,
    rng: np.random.Generator,
) -> RowComponents:
    """Components of the dropped-out predictive of each row (ledger E51).

    Parameters
    ----------
    posterior : LinearPosterior
        Of the weights.
    matrix : array or CSR matrix, shape (rows, p)
        The rows x.
    n_draws : int
        Masks to draw if there are too many to enumerate; all rows share them.
    rng : numpy.random.Generator
        Where they come from.

    Returns
    -------
    RowComponents
    """
    if isinstance(posterior.design.noise, BernoulliFeatureNoise):
        places = [_Place(posterior.design, matrix[[i]]) for i in range(matrix.shape[0])]
        if places and max(len(place.units) for place in places) <= MOST_UNITS:
            return _enumerated(posterior, places)
    return _drawn(posterior, matrix, n_draws, rng)


class _Place:
    """One row x - o, and the units of noise that it notices."""

    def __init__(self, design: Design, row: Matrix) -> None:
        origin = design.intercept.origin(design.features)
        dense = row.toarray() if is_sparse(row) else np.asarray(row)
        values = dense.ravel() if origin is None else dense.ravel() - origin
        self.design = design
        self._features = np.flatnonzero(values)
        self._values = values[self._features]
        self._noisy = design.noise.variance[self._features] > 0.0
        _, unit_of = design.noise.units
        self.units, self._member = np.unique(
            unit_of[self._features[self._noisy]], return_inverse=True
        )

    @property
    def rates(self) -> Array:
        """Drop rate of each unit that is noticed."""
        first, _ = self.design.noise.units
        return self.design.noise.drop_rates[first[self.units]]

    def directions(self, masks: np.ndarray) -> ShiftedRows:
        """Whitened directions of the row under masks (masks, units)."""
        perturbed = np.repeat(self._values[None, :], len(masks), 0)
        perturbed[:, self._noisy] *= masks[:, self._member]
        ends = np.arange(len(masks) + 1) * len(self._features)
        places = np.tile(self._features, len(masks))
        shape = (len(masks), self.design.features.n_features)
        matrix = sp.csr_array((perturbed.ravel(), places, ends), shape=shape)
        return self.design.perturbed(matrix)


def _enumerated(posterior: LinearPosterior, places: list[_Place]) -> RowComponents:
    """All masks of every row; rows with fewer masks are filled up with weight 0."""
    size = 1 << max(len(place.units) for place in places)
    shape = (size, len(places))
    locations, leverages = np.zeros(shape), np.zeros(shape)
    log_weights = np.full(shape, -np.inf)
    for column, place in enumerate(places):
        masks = all_masks(len(place.units))
        directions, rates = place.directions(masks), place.rates
        # E51: pi(m) = prod_d (1 - f_d)^m_d f_d^(1 - m_d), the empty mask included
        chances = np.where(masks, np.log1p(-rates), np.log(rates)).sum(1)
        locations[: len(masks), column] = posterior.locations(directions)
        leverages[: len(masks), column] = posterior.leverages(directions)
        log_weights[: len(masks), column] = chances
    return RowComponents(locations, leverages, log_weights, 0)


def all_masks(n_units: int) -> np.ndarray:
    """Every mask of so many units, as bools of shape (2^n_units, n_units)."""
    return (np.arange(1 << n_units)[:, None] >> np.arange(n_units)) & 1 == 1


def _drawn(
    posterior: LinearPosterior,
    matrix: Matrix,
    n_draws: int,
    rng: np.random.Generator,
) -> RowComponents:
    design = posterior.design
    found = [
        posterior.predict(matrix, design.noise.draw(1, rng)[0]) for _ in range(n_draws)
    ]
    locations, leverages = (np.stack(part) for part in zip(*found, strict=True))
    log_weights = np.full_like(locations, -np.log(n_draws))
    return RowComponents(locations, leverages, log_weights, n_draws)
