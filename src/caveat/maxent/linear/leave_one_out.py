"""Leave-one-out predictions and generalised cross-validation.

The fast form holds the sums of squares Lambda1 fixed when an observation is left out,
as is exact for ordinary ridge regression. Deleting an observation also takes its
squares out of Lambda1, so for drop rates above 0 only a refit is exact; the difference
vanishes like 1/n.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch

from caveat.maxent.linear.arrays import Array
from caveat.maxent.linear.design import Design
from caveat.maxent.linear.posterior import LinearPosterior, fit_posterior
from caveat.predictive.student import log_density


@final
@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What each observation is predicted to be by all the others.

    Attributes
    ----------
    residuals : array, shape (n,)
        Observation minus its leave-one-out prediction.
    scales : array, shape (n,)
        Scale of the Student-t predictive of the observation.
    df : float
        Its degrees of freedom.
    """

    residuals: Array
    scales: Array
    df: float

    @property
    def mean_squared_error(self) -> float:
        """Mean of the squared residuals."""
        return float(np.square(self.residuals).mean())

    @property
    def log_densities(self) -> Array:
        """Log predictive density of each observation; shape (n,)."""
        y, scale = torch.from_numpy(self.residuals), torch.from_numpy(self.scales)
        found = log_density(y, torch.zeros_like(y), scale, torch.full_like(y, self.df))
        return np.asarray(found.numpy())


def fast_leave_one_out(posterior: LinearPosterior) -> LeaveOneOut:
    """Leave-one-out with Lambda1 held fixed: one factorisation for all (E48).

    Parameters
    ----------
    posterior : LinearPosterior
        Of all observations.

    Returns
    -------
    LeaveOneOut
        Exact if nothing is dropped, else off by a share of order 1/n.
    """
    diagonal = complement(posterior)
    # E48: e_i = alpha_i / B_ii, and y_i | rest ~ t_{2a-1}(y_i - e_i, (b_i/a_i) / B_ii)
    residuals = posterior.residual / diagonal
    shape = posterior.shape - 0.5
    rates = posterior.rate - 0.5 * posterior.residual * residuals
    scales = np.sqrt(np.maximum(rates, 0.0) / shape / diagonal)
    return LeaveOneOut(residuals, scales, 2.0 * shape)


def exact_leave_one_out(posterior: LinearPosterior) -> LeaveOneOut:
    """Leave-one-out by n refits.

    Parameters
    ----------
    posterior : LinearPosterior
        Of all observations.

    Returns
    -------
    LeaveOneOut
    """
    y = observed(posterior)
    refits = [_left_out(posterior, y, row) for row in range(len(y))]
    residuals, scales = np.array(refits).T
    return LeaveOneOut(residuals, scales, posterior.df - 1.0)


def generalised_cross_validation(posterior: LinearPosterior) -> float:
    """GCV score n |alpha|² / tr(B)², a smooth stand-in for leave-one-out (E49).

    Parameters
    ----------
    posterior : LinearPosterior
        Of the rows that were fitted.

    Returns
    -------
    float
        In the units of y²; lower is better.
    """
    residual = posterior.residual
    # E49: GCV = n alpha'alpha / tr(B)^2
    return float(
        len(residual) * (residual @ residual) / complement(posterior).sum() ** 2
    )


def effective_degrees_of_freedom(posterior: LinearPosterior) -> float:
    """Trace of the hat matrix, n - tr(B), the intercept included (ledger E49).

    Parameters
    ----------
    posterior : LinearPosterior
        Of the rows that were fitted.

    Returns
    -------
    float
        From 0 to the number of rows.
    """
    return float(len(posterior.residual) - complement(posterior).sum())


def complement(posterior: LinearPosterior) -> Array:
    """Diagonal of B, with B y the residuals; shape (n,)."""
    design = posterior.design
    return design.factor.complement() - design.level_variance


def observed(posterior: LinearPosterior) -> Array:
    """The response that was fitted."""
    fitted = posterior.design.rows.times(posterior.white_mean)
    return posterior.level + fitted + posterior.residual


def _left_out(posterior: LinearPosterior, y: Array, row: int) -> tuple[float, float]:
    """Residual and scale of one observation under the posterior of all others."""
    whole = posterior.design
    design = Design(
        whole.features.without(row),
        whole.noise,
        whole.prior_precision,
        whole.intercept,
    )
    others = fit_posterior(design, np.delete(y, row), prior=posterior.prior)
    place = whole.features.matrix[[row]]
    location, leverage = others.predict(place, whole.noise.mean)
    scale = others.noise_scale * np.sqrt(1.0 + leverage)
    return float(y[row] - location[0]), float(scale[0])
