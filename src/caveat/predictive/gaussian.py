"""The predictive of a regression model: a mixture of T Gaussians per row.

.. [Gal2016] Y. Gal, Z. Ghahramani. Dropout as a Bayesian approximation:
   representing model uncertainty in deep learning. ICML 2016 (paper 001).
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, final

import torch
from torch import Tensor

from caveat import _validation
from caveat.errors import CaveatWarning, DrawsNotKeptError, ShapeError
from caveat.predictive import mixture
from caveat.predictive.base import DRAWS_FIRST, count_of
from caveat.predictive.covariance import JointMoments
from caveat.predictive.crps import mixture_crps
from caveat.predictive.late import Late
from caveat.predictive.moments import (
    Moments,
    few_moments,
    finite_moments,
    flat_event,
    working_dtype,
)
from caveat.predictive.regression import RegressionPredictive
from caveat.predictive.strata import Stratification, errors_of

JOINT_LIMIT = 64  # outputs for which a covariance is gathered without the draws

SAMPLED, EXACT = "sampled", "exact"  # how mean and variance were found
POINT = "point"  # one Gaussian, with nothing to find

_NORMAL = """{what}: the draws were not kept, so this is an approximation, that of one
Gaussian with the same mean and variance; keep_draws=True gives that of the draws."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class GaussianPredictive(RegressionPredictive):
    """Mean, variance and density of a regression, from T draws [Gal2016]_.

    Each draw f_t(x) is the centre of a Gaussian with the variance 1/tau of the
    observation noise; the predictive is the average of the T Gaussians. A model that
    learns the noise gives each draw its own tau_t(x). Make one by :meth:`from_draws`,
    or by ``MCDropout.regress``. No gradient passes through it.

    Its mean is the average of the draws (ledger E1; eq. 11) and its epistemic variance
    theirs, with divisor T; both are float64 for float64 draws and float32 for all
    others. Density, cdf, quantiles, samples and CRPS are those of the mixture, and need
    the draws. Without them, cdf, quantiles and intervals are those of a Gaussian with
    the same mean and variance, with a warning; the others are an error.

    A network without noise gives :meth:`point`, one Gaussian a row.

    Attributes
    ----------
    precision : Tensor, shape (batch, *event)
        tau, the inverse variance of the observation noise; if each draw has its own,
        the inverse of their mean variance.
    method : str
        How mean, variance and covariance were found: ``"sampled"``, from the draws;
        in closed form, and then how (see :meth:`with_moments`); or ``"point"``.

    Examples
    --------
    >>> import torch
    >>> draws = torch.tensor([[[0.0], [1.0]], [[2.0], [1.0]]])  # 2 draws, 2 rows
    >>> predictive = GaussianPredictive.from_draws(draws, precision=4.0)
    >>> predictive.mean.squeeze(1), predictive.variance.squeeze(1)
    (tensor([1., 1.]), tensor([1.2500, 0.2500]))
    >>> predictive.log_prob(torch.tensor([[1.0], [1.0]]))
    tensor([-2.2258, -0.2258])
    >>> predictive[1]
    GaussianPredictive: 1 row of outputs (1,), 2 draws (kept)
      mean  1 (median), 1 to 1
      std   0.5 (median), 0.5 to 0.5
    """

    _mean: Tensor
    _epistemic_variance: Tensor
    precision: Tensor
    _draws: Tensor | None = field(default=None, metadata=DRAWS_FIRST)
    _joint: Tensor | None = None  # shape: (batch, D, D), epistemic
    _draw_precision: Tensor | None = field(default=None, metadata=DRAWS_FIRST)
    method: str = SAMPLED
    _mean_error: Tensor | None = None  # if it is not that of independent draws
    _late: Late[Tensor] | None = None  # the same, if nobody asked for it yet

    @classmethod
    def from_draws(
        cls, draws: Tensor, *, precision: Any, design: Stratification | None = None
    ) -> Self:
        """The predictive of the outputs of T stochastic passes.

        Parameters
        ----------
        draws : Tensor, shape (draws, batch, *event)
            Held, not copied: do not write to it afterwards.
        precision : float or Tensor
            tau in units of 1/y², broadcastable to (batch, *event). A vector counts
            as one value per output; one per row needs the shape (batch, 1). With as
            many axes as ``draws``, the first is that of the draws: each has its own.
        design : Stratification, optional
            How the draws were stratified, from draw 0 on; without one they count as
            independent. It is what ``mean_error`` depends on.

        Returns
        -------
        GaussianPredictive
            Which keeps its draws, so that everything can be asked of it.
        """
        draws = _validation.draws(draws, axes="(draws, batch, *event)", least=2)
        dtype = working_dtype(draws.dtype)
        tau = _validation.plain_precision(precision)
        if design is None and isinstance(tau, float) and (few := few_moments(draws)):
            tau = _validation.precision_for(tau, few[0])
            return cls(len(draws), *few, tau, draws.detach())
        moments = finite_moments(draws)
        own = None
        if isinstance(tau, Tensor) and tau.ndim >= draws.ndim:
            own = per_draw(tau, draws)
            tau = mixture.mean_noise_variance(own).reciprocal()
        found = cls.from_moments(
            moments, dtype, precision=tau, draws=draws.detach(), draw_precision=own
        )
        return found if design is None else found.stratified(design)

    @classmethod
    def point(cls, mean: Tensor, *, precision: Any) -> Self:
        """One Gaussian per row: the answer of a network whose noise is turned off.

        Parameters
        ----------
        mean : Tensor, shape (batch, *event)
            What the network says.
        precision : float or Tensor
            tau in units of 1/y², broadcastable to the shape of ``mean``.

        Returns
        -------
        GaussianPredictive
            With no draws and no epistemic variance: it knows nothing of what the
            network does not know.

        Examples
        --------
        >>> import torch
        >>> GaussianPredictive.point(torch.zeros(2, 1), precision=4.0)
        GaussianPredictive: 2 rows of outputs (1,), point
          mean  0 (median), 0 to 0
          std   0.5 (median), 0.5 to 0.5
        """
        mean = _validation.floating("mean", mean).detach()
        if mean.ndim < 1:
            raise ShapeError("mean must have the shape (batch, *event). Got a scalar.")
        mean = _validation.finite("mean", mean).to(working_dtype(mean.dtype))
        tau = _validation.precision_for(precision, mean)
        zero = torch.zeros_like(mean)
        return cls(0, mean, zero, tau, method=POINT, _mean_error=zero)

    @classmethod
    def from_moments(
        cls,
        moments: Moments,
        dtype: torch.dtype,
        *,
        precision: Any,
        draws: Tensor | None = None,
        joint: JointMoments | None = None,
        draw_precision: Tensor | None = None,
    ) -> Self:
        """The predictive of gathered moments; what accumulators end with.

        Parameters
        ----------
        moments : Moments
            Of the draws, of shape (batch, *event).
        dtype : torch.dtype
            The type of the answers.
        precision : float or Tensor
            As for :meth:`from_draws`.
        draws : Tensor, optional
            The draws themselves, if they are to be kept.
        joint : JointMoments, optional
            Their joint moments, for the covariance of draws that are not kept.
        draw_precision : Tensor, shape (draws, batch, *event), optional
            tau of each draw, if they differ; ``precision`` is then the inverse of the
            mean of their inverses.

        Returns
        -------
        GaussianPredictive
            Which has a density and quantiles only if ``draws`` are given.
        """
        # E1: mean = (1/T) sum_t f_t
        mean = moments.mean.to(dtype)
        tau = _validation.precision_for(precision, mean)
        covariance = None if joint is None else joint.covariance
        variance = moments.variance.to(dtype)
        return cls(
            *(moments.count, mean, variance, tau, draws, covariance, draw_precision)
        )

    @property
    def mean(self) -> Tensor:
        return self._mean

    @property
    def epistemic_variance(self) -> Tensor:
        return self._epistemic_variance

    @property
    def noise_variance(self) -> Tensor:
        # E85: 1/tau; the mean of 1/tau_t, if each draw has its own precision
        return self.precision.reciprocal()

    @property
    def exact(self) -> bool:
        """Whether mean, variance and covariance are exact over the noise."""
        return self.method == EXACT

    @property
    def mean_error(self) -> Tensor:
        if self._mean_error is not None:
            return self._mean_error
        if self._late is not None:
            return self._late.value.to(self._mean.dtype)
        scatter = self._epistemic_variance * self.n_draws
        return Moments(self.n_draws, self._mean, scatter).mean_error

    @property
    def covariance(self) -> Tensor:
        """Covariance of the D outputs of each row (ledger E2; eq. 10).

        Shape (batch, D, D), the event being flattened to D; noise included. Without
        the draws it is known for up to 64 outputs.
        """
        # E2: Cov y = I/tau + (1/T) sum_t f_t f_t' - mean mean'
        noise = torch.diag_embed(flat_event(self.noise_variance, 1))
        return self._epistemic_covariance() + noise

    @property
    def draws(self) -> Tensor:
        if self.method == POINT:
            return super().draws
        return self._centres("draws")

    @property
    def draw_precision(self) -> Tensor:
        """tau of each draw, shape (draws, batch, *event); of all, if they share it."""
        return self._mixture_precision.expand(self.draws.shape)

    def stratified(self, design: Stratification) -> Self:
        """The same with the errors of draws that were stratified by a design.

        They are worked out when ``mean_error`` is first asked for, of all rows.
        """
        draws = self._centres("The error of stratified draws")
        return self._with(_mean_error=None, _late=Late(errors_of, draws, design))

    def with_moments(
        self,
        mean: Tensor,
        variance: Tensor,
        *,
        method: str,
        mean_error: Tensor,
        covariance: Tensor | None = None,
    ) -> Self:
        """The same draws beside a mean and a variance found in a better way.

        Density, quantiles and intervals stay those of the draws.

        Parameters
        ----------
        mean, variance : Tensor, shape (batch, *event)
            Of the output of the model over its noise; without observation noise.
        method : str
            How they were found, in a few words for ``repr``; ``"exact"`` if they are.
        mean_error : Tensor, shape (batch, *event)
            Monte Carlo standard error of ``mean``.
        covariance : Tensor, shape (batch, D, D), optional
            Of the flattened event; without it, that of the draws is given.

        Returns
        -------
        GaussianPredictive
            Which shares the draws of this one.

        Examples
        --------
        >>> import torch
        >>> drawn = GaussianPredictive.from_draws(torch.eye(2), precision=1.0)
        >>> zero, one = torch.zeros(2), torch.ones(2)
        >>> drawn.with_moments(zero, one, method="exact", mean_error=zero)
        GaussianPredictive: 2 rows of outputs (), 2 draws (kept), exact moments
          mean  0 (median), 0 to 0
          std   1.41 (median), 1.41 to 1.41
        """
        return replace(
            self,
            _mean=mean.to(self.mean),
            _epistemic_variance=variance.to(self.mean),
            method=method,
            _mean_error=mean_error.to(self.mean),
            _late=None,
            _joint=self._joint if covariance is None else covariance.to(self.mean),
        )

    def with_precision(self, precision: Any) -> Self:
        """The same draws under another observation noise.

        Parameters
        ----------
        precision : float or Tensor
            As for :meth:`from_draws`; one per draw needs draws that were kept.

        Returns
        -------
        GaussianPredictive
            Which shares the draws of this one.

        Examples
        --------
        >>> import torch
        >>> one = GaussianPredictive.from_draws(torch.zeros(2, 1), precision=1.0)
        >>> one.with_precision(4.0).std
        tensor([0.5000])
        """
        tau = _validation.precision(precision)
        if tau.ndim <= self.mean.ndim:
            tau = _validation.precision_for(tau, self.mean)
            return replace(self, precision=tau, _draw_precision=None)
        own = per_draw(tau, self._centres("A precision for each draw"))
        mean_tau = mixture.mean_noise_variance(own).reciprocal().to(self.mean.dtype)
        return replace(self, precision=mean_tau, _draw_precision=own)

    def scale_precision(self, factor: float) -> Self:
        factor = _validation.positive("factor", factor)
        return self.with_precision(factor * self._mixture_precision)

    def _rescaled(self, a: Tensor, b: Tensor) -> Self:
        # E18: tau = tau_std / s²
        error = self._mean_error if self._late is None else self.mean_error
        return replace(
            self,
            _mean=self._mean * a + b,
            _epistemic_variance=self._epistemic_variance * a.square(),
            precision=self.precision / a.square(),
            _draws=None if self._draws is None else self._draws * a + b,
            _joint=_times(self._joint, _outer(a)),
            _draw_precision=_times(self._draw_precision, a.square().reciprocal()),
            _mean_error=_times(error, a.abs()),
            _late=None,
        )

    def _log_prob(self, y: Tensor) -> Tensor:
        centres = self._centres("log_prob")
        return mixture.log_density(centres, self._mixture_precision, y)

    def _cdf(self, y: Tensor) -> Tensor:
        return mixture.cdf(*self._components("cdf"), y)

    def _quantiles(self, levels: Sequence[float]) -> Tensor:
        """Right to a millionth of the standard deviation, or to rounding."""
        return mixture.quantiles(*self._components("quantile"), levels)

    def _components(self, what: str) -> tuple[Tensor, Tensor]:
        """Centres and precisions of the mixture, or of the one Gaussian that is known.

        Without the draws that is the Gaussian with the mean and variance of a new
        observation, and a warning says so.
        """
        if self._draws is not None or self.method == POINT:
            return self._centres(what), self._mixture_precision
        warnings.warn(_NORMAL.format(what=what), CaveatWarning, stacklevel=4)
        return self._mean.unsqueeze(0), self.variance.reciprocal()

    def _crps(self, y: Tensor) -> Tensor:
        centres = self._centres("crps")
        return mixture_crps(centres, self._mixture_precision.expand(centres.shape), y)

    def _sample(self, number: int, seed: int) -> Tensor:
        centres = self._centres("sample")
        found = mixture.observations(centres, self._mixture_precision, number, seed)
        return self._answer(found)

    @property
    def _mixture_precision(self) -> Tensor:
        own = self._draw_precision
        return self.precision if own is None else own

    def _settled(self) -> Self:
        if self._late is None:
            return self
        return replace(self, _mean_error=self.mean_error, _late=None)

    def _epistemic_covariance(self) -> Tensor:
        if self._joint is not None:
            return self._joint
        outputs = math.prod(self.mean.shape[1:])
        if self._draws is not None and outputs > 1:
            return JointMoments.of(self._draws).covariance
        if outputs == 1 or self.method == POINT:
            return torch.diag_embed(flat_event(self.epistemic_variance, 1))
        raise _not_kept(f"The covariance of more than {JOINT_LIMIT} outputs")

    def _centres(self, what: str) -> Tensor:
        """Centres of the mixture, (draws, batch, *event), which ``what`` needs."""
        if self.method == POINT:
            return self._mean.unsqueeze(0)
        if self._draws is None:
            raise _not_kept(what)
        return self._draws

    def _headline(self) -> str:
        rows = f"{count_of(len(self), 'row')} of outputs {tuple(self.mean.shape[1:])}"
        if self.method == POINT:
            return f"{rows}, point"
        kept = "kept" if self._draws is not None else "not kept"
        how = "" if self.method == SAMPLED else f", {self.method} moments"
        return f"{rows}, {count_of(self.n_draws, 'draw')} ({kept}){how}"


def per_draw(precision: Tensor, draws: Tensor) -> Tensor:
    """A precision for each draw, broadcast to ``draws`` (draws, batch, *event)."""
    tau = _validation.precision(precision.to(working_dtype(draws.dtype)))
    try:
        return tau.to(draws.device).expand(draws.shape)
    except RuntimeError:
        _, *rest = draws.shape
        raise ShapeError(
            f"precision must be a number, one per output {tuple(rest[1:])}, or one per "
            f"row {(rest[0], *[1] * len(rest[1:]))}; or, one for each draw, have the "
            f"shape {tuple(draws.shape)} of the draws. Got {tuple(tau.shape)}."
        ) from None


def _outer(scale: Tensor) -> Tensor:
    flat = scale.reshape(-1)
    return flat[:, None] * flat  # shape: (D, D)


def _times(values: Tensor | None, factor: Tensor) -> Tensor | None:
    return None if values is None else values * factor


def _not_kept(what: str) -> DrawsNotKeptError:
    return DrawsNotKeptError(
        f"{what} needs the single draws, and only their moments were kept. "
        f"Pass keep_draws=True to MCDropout.regress."
    )
