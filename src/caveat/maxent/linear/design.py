"""Everything about a fit that does not depend on the response."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from caveat.maxent.linear.arrays import Array, Matrix, canonical
from caveat.maxent.linear.factors import DualFactor, Factor, PrimalFactor
from caveat.maxent.linear.features import Features
from caveat.maxent.linear.intercept import WITHOUT, Intercept
from caveat.maxent.linear.noise import FeatureNoise
from caveat.maxent.linear.rows import ShiftedRows
from caveat.maxent.linear.whitening import Whitening, whiten


@final
@dataclass(frozen=True, eq=False)
class Design:
    """Features, noise, prior and intercept of a Bayesian dropout linear model.

    Attributes
    ----------
    features : Features
        The covariates, n by p.
    noise : FeatureNoise
        What multiplies the weights.
    prior_precision : float
        lambda0 >= 0; w | v ~ N(0, v / lambda0).
    intercept : Intercept
        Whether there is one, and where dropped features go.
    """

    features: Features
    noise: FeatureNoise
    prior_precision: float
    intercept: Intercept = WITHOUT

    @cached_property
    def whitening(self) -> Whitening:
        """Coordinates in which the effective prior is standard (ledger E40)."""
        return whiten(self.features, self.noise, self.intercept, self.prior_precision)

    @cached_property
    def rows(self) -> ShiftedRows:
        """Z, the whitened rows r o (x - mean) T^-1."""
        return self.directions(self.features.matrix, self.noise.mean)

    @cached_property
    def factor(self) -> Factor:
        """The factorised posterior precision, in the smaller of the two forms."""
        if self.features.n_features > self.features.n_rows and self.whitening.is_proper:
            return self.dual
        return self.primal

    @cached_property
    def primal(self) -> Factor:
        """The p by p form."""
        return PrimalFactor(self.rows, self.whitening.penalty)

    @cached_property
    def dual(self) -> Factor:
        """The n by n form; every effective prior must be proper."""
        return DualFactor(self.rows)

    @property
    def n_level(self) -> int:
        """1 with an intercept, else 0: what it takes off the degrees of freedom."""
        return int(self.intercept.fitted)

    @property
    def level_variance(self) -> float:
        """Variance of the intercept at the centre of the data, in units of v."""
        return self.n_level / self.features.n_rows

    @property
    def offset(self) -> Array | None:
        """c in the direction u = xi o (x - o) - c of a row x with the noise xi."""
        if not self.intercept.fitted or self.intercept.to_mean:
            return None
        return self.noise.mean * self.features.means

    def shift(self, factor: Array) -> Array | None:
        """What is taken off the rows factor o x to make them directions."""
        origin = self.intercept.origin(self.features)
        return self.offset if origin is None else factor * origin

    def directions(self, matrix: Matrix, factor: Array) -> ShiftedRows:
        """Whitened directions of rows x of which each feature is multiplied.

        Parameters
        ----------
        matrix : array or CSR matrix, shape (rows, p)
            The rows x.
        factor : array, shape (p,)
            The mean r of the noise (weight-averaged), 1 (undropped), or a mask.

        Returns
        -------
        ShiftedRows
            u T^-1 for u = factor o (x - o) - c; the location of the response is its
            mean plus u'mu.
        """
        shift = self.shift(factor)
        white = self.whitening.directions(canonical(matrix), factor)
        return ShiftedRows.less(white, None if shift is None else self._white(shift))

    def perturbed(self, matrix: Matrix) -> ShiftedRows:
        """Whitened directions of rows that are already xi o (x - o)."""
        ones = np.ones(self.features.n_features)
        white = self.whitening.directions(matrix, ones)
        return ShiftedRows.less(
            white, None if self.offset is None else self._white(self.offset)
        )

    def _white(self, direction: Array) -> Array:
        ones = np.ones_like(direction)
        return np.asarray(self.whitening.directions(direction[None, :], ones)).ravel()
