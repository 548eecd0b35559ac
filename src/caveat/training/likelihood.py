"""The predictive density of held-out targets as a function of the precision.

Draws of a network are computed once; their errors then serve every precision, so the
best one is found by a search in one dimension instead of a grid of trainings.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from caveat.errors import ParameterError
from caveat.evaluation.precision import BestScale, search_scale

_THIN = 4  # only every fourth draw takes part in the first look at a range


@dataclass(frozen=True, eq=False)
class Residuals:
    """Errors of T draws on held-out rows.

    The density of row i at scale k is the mixture over t of Gaussians with precision
    k tau_ti, so that (ledger E3)

        log p_i(k) = logsumexp_t( half_log_ti - k/2 error_ti ) - log T + D/2 log(k/2 pi)

    Attributes
    ----------
    errors : Tensor, shape (draws, rows)
        sum_d tau_tid (y_id - f_tid)², divided by ``unit``; tau = 1 for a network
        without a noise head, and the scale is then the precision itself, in the units
        of 1/y².
    half_logs : Tensor, shape (draws, rows), or None
        1/2 sum_d log tau_tid; None stands for zeros.
    n_targets : int
        D.
    weights : Tensor, shape (rows,), or None
        Of the rows in a mean; None for equal ones.
    unit : float
        Of the errors, so that numbers of any size fit a short type.
    """

    errors: Tensor
    half_logs: Tensor | None
    n_targets: int
    weights: Tensor | None = None
    unit: float = 1.0

    def log_density(self, scale: float) -> Tensor:
        """Log density of each row, shape (rows,)."""
        exponents = self.errors * (-0.5 * scale * self.unit)
        if self.half_logs is not None:
            exponents = exponents + self.half_logs
        constant = 0.5 * self.n_targets * math.log(scale / (2 * math.pi))
        return exponents.logsumexp(0) - math.log(len(self.errors)) + constant

    def thinned(self, step: int) -> "Residuals":
        """Every ``step``-th draw."""
        logs = None if self.half_logs is None else self.half_logs[::step]
        return replace(self, errors=self.errors[::step], half_logs=logs)

    def shortened(self) -> "Residuals":
        """The same in half the memory: 32 bits, whatever the units of y."""
        mean = float(self.errors.mean())
        unit = mean if 0.0 < mean < math.inf else 1.0
        logs = None if self.half_logs is None else self.half_logs.to(torch.float32)
        errors = (self.errors / unit).to(torch.float32)
        return replace(self, errors=errors, half_logs=logs, unit=self.unit * unit)


def best_scale(residuals: Sequence[Residuals], *, low: float, high: float) -> BestScale:
    """Maximise the mean log density of held-out rows over the scale.

    Parameters
    ----------
    residuals : sequence of Residuals
        Of the validation rows of each fold.
    low, high : float
        Range of the scale.

    Returns
    -------
    BestScale
    """
    if not residuals or not sum(r.errors.shape[1] for r in residuals):
        raise ParameterError("residuals must hold at least one row. Got none.")
    if not all(bool(r.errors.isfinite().all()) for r in residuals):
        return BestScale(math.nan, -math.inf)

    weights = _shares(residuals)

    def mean_density(scale: float, among: Sequence[Residuals] = residuals) -> float:
        logs = torch.cat([r.log_density(scale) for r in among]).to(torch.float64)
        return float(logs.mean() if weights is None else weights @ logs)

    few = [r.thinned(_THIN) for r in residuals]
    return search_scale(
        mean_density, low=low, high=high, first_look=lambda k: mean_density(k, few)
    )


def _shares(residuals: Sequence[Residuals]) -> Tensor | None:
    """Weights of all rows with a sum of 1; None for equal ones."""
    found = [r.weights for r in residuals if r.weights is not None]
    if not found:
        return None
    joined = torch.cat(found).to(torch.float64)
    return joined / joined.sum()


class MixtureScore:
    """RMSE of the mean and log density of targets, from draws that come in blocks.

    Parameters
    ----------
    targets : Tensor, shape (rows, D)
        In the units of y.
    scale : float
        As in :class:`Residuals`.
    """

    def __init__(self, targets: Tensor, scale: float) -> None:
        self._targets = targets.to(torch.float64)
        self._scale = scale
        self._sum = torch.zeros_like(self._targets)
        self._log_sum = torch.full((len(targets),), -math.inf, dtype=torch.float64)
        self._count = 0

    def add(self, means: Tensor, precisions: Tensor | None = None) -> None:
        """Take in draws (draws, rows, D), in the units of y."""
        self._sum += means.sum(0)
        self._count += len(means)
        gaps = residuals(means, precisions, self._targets)
        exponents = gaps.errors * (-0.5 * self._scale)
        if gaps.half_logs is not None:
            exponents = exponents + gaps.half_logs
        self._log_sum = torch.logaddexp(self._log_sum, exponents.logsumexp(0))

    @property
    def rmse(self) -> float:
        """Root mean squared error of the average draw."""
        mean = self._sum / self._count
        return float((mean - self._targets).square().mean().sqrt())

    @property
    def log_densities(self) -> Tensor:
        """Log density of each row, shape (rows,), in the units of y."""
        constant = 0.5 * self._targets.shape[1] * math.log(self._scale / (2 * math.pi))
        return self._log_sum + (constant - math.log(self._count))

    @property
    def log_likelihood(self) -> float:
        """Their mean."""
        return float(self.log_densities.mean())


def residuals(means: Tensor, precisions: Tensor | None, targets: Tensor) -> Residuals:
    """Errors of draws (draws, rows, D) against targets (rows, D), in the units of y."""
    errors = (means - targets).square()
    half_logs = None
    if precisions is not None:
        errors = errors * precisions
        half_logs = 0.5 * precisions.log().sum(-1)
    return Residuals(errors.sum(-1), half_logs, targets.shape[1])
