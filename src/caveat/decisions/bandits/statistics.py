"""Sums from which the exact posterior of paper 002 follows, row by row.

The posterior needs only X'X, X'y, y'y and n (its Lambda1 is the diagonal of X'X), so a
row is learned by adding to them, and the drop rate can be chosen afterwards. With
dropout a row changes the whole diagonal of Lambda, not by rank one, so the factor is
made anew when it is next needed instead of being updated.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg

from caveat.decisions.bandits.protocols import Array, Integers
from caveat.maxent.linear import VariancePrior


@final
class LinearStatistics:
    """Sums over the rows of several linear models with the same features.

    Parameters
    ----------
    n_models, n_features : int
        How many of each.
    """

    def __init__(self, n_models: int, n_features: int) -> None:
        self.gram = np.zeros((n_models, n_features, n_features))
        self.moment = np.zeros((n_models, n_features))
        self.square = np.zeros(n_models)
        self.count = np.zeros(n_models, dtype=np.int64)

    def add(self, models: Integers, rows: Array, rewards: Array) -> list[int]:
        """Learn rows (rows, features), each for its model; gives back which changed."""
        changed: list[int] = np.unique(models).tolist()
        for k in changed:
            x, y = rows[models == k], rewards[models == k]
            self.gram[k] += x.T @ x
            self.moment[k] += x.T @ y
            self.square[k] += y @ y
            self.count[k] += len(y)
        return changed

    def posterior(
        self, k: int, drop_rates: Array, precision: float, prior: VariancePrior
    ) -> "WeightPosterior":
        """The posterior of model k (ledger E147), that of rows all at once.

        Parameters
        ----------
        k : int
            Which model.
        drop_rates : array, shape (features,)
            f of each feature.
        precision : float
            lambda0, above 0.
        prior : VariancePrior
            (a0, b0) of the noise variance, both above 0.

        Returns
        -------
        WeightPosterior
        """
        keep = 1.0 - drop_rates
        # E147: Lambda = lambda0 I + f(1-f) Lambda1 + (1-f)^2 X'X,
        #       mu = (1-f) Lambda^-1 X'y,  s = y'y - (1-f) y'X mu
        matrix = keep[:, None] * self.gram[k] * keep
        diagonal = precision + drop_rates * keep * np.diag(self.gram[k])
        matrix[np.diag_indices_from(matrix)] += diagonal
        lower = np.linalg.cholesky(matrix)
        right = keep * self.moment[k]
        mean = scipy.linalg.cho_solve((lower, True), right, check_finite=False)
        misfit = max(float(self.square[k] - right @ mean), 0.0)
        return WeightPosterior(
            mean,
            lower,
            keep,
            prior.shape + 0.5 * float(self.count[k]),
            prior.rate + 0.5 * misfit,
        )


@final
@dataclass(frozen=True, eq=False)
class WeightPosterior:
    """w | v ~ N(mean, v (L L')^-1), v ~ InvGamma(shape, rate).

    Attributes
    ----------
    mean : array, shape (features,)
        mu.
    lower : array, shape (features, features)
        L, the Cholesky factor of Lambda.
    keep : array, shape (features,)
        1 - f, the mean of the masks.
    shape, rate : float
        a_n and b_n.
    """

    mean: Array
    lower: Array
    keep: Array
    shape: float
    rate: float

    @property
    def effective_mean(self) -> Array:
        """(1 - f) mu, the weights of the point prediction."""
        return self.keep * self.mean

    def effective_draws(self, normal: Array, gamma: Array) -> Array:
        """(1 - f) w for draws of w (ledger E148).

        Parameters
        ----------
        normal : array, shape (draws, features)
            Standard normal numbers.
        gamma : array, shape (draws,)
            Gamma numbers of shape ``shape`` and rate 1.

        Returns
        -------
        array, shape (draws, features)
        """
        # E148: v = b_n / g, w = mu + sqrt(v) L^-T z
        spread = np.sqrt(self.rate / gamma)[:, None]
        deviates = scipy.linalg.solve_triangular(
            self.lower, normal.T, lower=True, trans="T", check_finite=False
        ).T
        draws: Array = self.keep * (self.mean + spread * deviates)
        return draws

    def effective_covariance(self) -> Array:
        """Covariance of (1 - f) w, for shape above 1; shape (features, features)."""
        inverse = scipy.linalg.cho_solve((self.lower, True), np.eye(len(self.mean)))
        scale = self.rate / (self.shape - 1.0)
        covariance: Array = scale * self.keep[:, None] * inverse * self.keep
        return covariance
