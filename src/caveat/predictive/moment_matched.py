"""The predictive of a mean and a variance that were found without sampling."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, final

import torch
from torch import Tensor

from caveat import _validation
from caveat._random import Seed, as_seed
from caveat.errors import ParameterError, ShapeError
from caveat.predictive.accumulators import CategoricalAccumulator
from caveat.predictive.base import count_of
from caveat.predictive.categorical import CategoricalPredictive
from caveat.predictive.crps import mixture_crps
from caveat.predictive.gaussian import EXACT
from caveat.predictive.mixture import standard_normal
from caveat.predictive.moments import flat_event, wide_dtype, working_dtype
from caveat.predictive.regression import RegressionPredictive
from caveat.predictive.softmax import mean_field_softmax

PROPAGATED = "propagated"

_TIED = 1e-9  # share of its variance that an output keeps, given those before it
_LEAST = 1e-300  # a variance of 0, where one divides by it

_NO_COVARIANCE = """The covariance of the outputs is not known: it is for exact moments
and for networks that end in a linear layer, up to 64 outputs. Draws give it:
MCDropout(model).regress(x, precision=...).covariance"""

_NO_DENSITY = """Some rows have no density: an output has no variance, or follows from
the others, and there is no observation noise, or next to none. Give them one:
predictive.with_precision(tau), with tau the inverse variance of the noise in y."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class MomentPredictive(RegressionPredictive):
    """Mean and variance of the output of a network over its noise; no draws.

    What :meth:`MCDropout.moments` returns. Two moments do not determine a distribution:
    density, cdf, quantiles, samples and CRPS are those of the **Gaussian** with this mean
    and this variance (ledger E161), which is an approximation even where the moments
    are exact. Outputs of a row are jointly Gaussian where their covariance is known,
    and taken as independent where it is not.

    Attributes
    ----------
    method : str
        ``"exact"``; or ``"propagated"``, an approximation.
    precision : Tensor, shape (batch, *event), or None
        tau, the inverse variance of the observation noise. None stands for no noise:
        ``variance`` is then that of the output of the network, and intervals are for
        it, not for what will be observed.

    Examples
    --------
    >>> import torch, caveat
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 1, bias=False))
    >>> _ = nn.init.ones_(net[1].weight)
    >>> moments = caveat.MCDropout(net).moments(torch.tensor([[1.0, 2.0]]))
    >>> moments
    MomentPredictive: 1 row of outputs (1,), exact moments as a Gaussian, without observation noise
      mean  3 (median), 3 to 3
      std   2.24 (median), 2.24 to 2.24
    >>> moments.with_precision(0.25).variance
    tensor([[9.]])
    """  # noqa: E501

    _mean: Tensor
    _epistemic_variance: Tensor
    method: str
    precision: Tensor | None = None
    _joint: Tensor | None = None  # shape: (batch, D, D), epistemic

    @classmethod
    def of(
        cls,
        mean: Tensor,
        variance: Tensor,
        *,
        method: str,
        precision: Any = None,
        covariance: Tensor | None = None,
    ) -> Self:
        """From moments of the output of a network over its noise.

        Parameters
        ----------
        mean, variance : Tensor, shape (batch, *event)
            Without observation noise.
        method : str
            ``"exact"`` if they are; else how they were found.
        precision : float or Tensor, optional
            tau of the observation noise, broadcastable to the shape of ``mean``.
        covariance : Tensor, shape (batch, D, D), optional
            Of the D outputs of a row, the event being flattened.

        Returns
        -------
        MomentPredictive
        """
        mean = _validation.floating("mean", mean).detach()
        mean = mean.to(working_dtype(mean.dtype))
        _validation.same_shape("variance", variance.shape, mean.shape)
        if not bool((variance >= 0).all()):
            raise ParameterError("variance must be 0 or above for every output.")
        joint = None if covariance is None else covariance.detach().to(mean)
        made = cls(0, mean, variance.detach().to(mean), method, None, joint)
        return made if precision is None else made.with_precision(precision)

    @property
    def mean(self) -> Tensor:
        return self._mean

    @property
    def epistemic_variance(self) -> Tensor:
        return self._epistemic_variance

    @property
    def noise_variance(self) -> Tensor:
        if self.precision is None:
            return torch.zeros_like(self._mean)
        return self.precision.reciprocal()

    @property
    def mean_error(self) -> Tensor:
        return torch.zeros_like(self._mean)

    @property
    def exact(self) -> bool:
        """Whether mean and variance are exact; else they are approximations."""
        return self.method == EXACT

    @property
    def covariance(self) -> Tensor:
        """Covariance of the D outputs of each row, noise included.

        Shape (batch, D, D), the event being flattened; known up to 64 outputs, of
        networks that end in a linear layer.
        """
        if self._joint is None:
            raise ShapeError(_NO_COVARIANCE)
        return self._joint + torch.diag_embed(flat_event(self.noise_variance, 1))

    @property
    def class_probs(self) -> Tensor:
        """Class probabilities, if the outputs are logits (batch, classes).

        The mean of the softmax under a Gaussian of these moments, by a mean-field
        formula (ledger E94): an approximation even where the moments are exact. Shape
        of ``mean``. Logits with more axes need :meth:`class_probs_along`.
        """
        return self.class_probs_along(None)

    def class_probs_along(self, class_dim: int | None) -> Tensor:
        """``class_probs`` of logits with any number of axes.

        Parameters
        ----------
        class_dim : int or None
            The axis of the classes, as 1 in (batch, classes, height, width); None for
            (batch, classes).

        Returns
        -------
        Tensor, shape (batch, *extra, classes)
            Classes last.
        """
        mean, joint = self._classes_last(class_dim), self._joint
        if joint is not None and mean.dim() == 2:
            return mean_field_softmax(mean, joint)
        axis = _validation.class_axis(class_dim, self._mean.shape)
        variance = self._epistemic_variance.movedim(axis, -1)
        n = mean.shape[-1]
        flat = mean_field_softmax(mean.reshape(-1, n), variance.reshape(-1, n))
        return flat.reshape(mean.shape)

    def _classes_last(self, class_dim: int | None) -> Tensor:
        """The mean, with two or more classes on its last axis."""
        shape = tuple(self._mean.shape)
        axis = 0 if len(shape) < 2 else _validation.class_axis(class_dim, shape)
        if axis == 0 or shape[axis] < 2:
            raise ShapeError(
                f"Class probabilities need logits of two or more classes. Got outputs "
                f"of shape {shape}."
            )
        return self._mean.movedim(axis, -1)

    def classification(
        self, n_draws: int = 100, *, seed: Seed = 0, class_dim: int | None = None
    ) -> CategoricalPredictive:
        """The classification whose logits are Gaussian with these moments.

        Parameters
        ----------
        n_draws : int, default 100
            Logits to draw of each row. It is these draws, not the network, that
            ``mean_error`` is about.
        seed : int, torch.Generator or None, default 0
            Of the logits.
        class_dim : int, optional
            The axis of the classes, if the logits have more than two.

        Returns
        -------
        CategoricalPredictive
            With the classes on the last axis, and without its draws: each row has draws
            of its own, so they are no functions and nothing joint follows from them.
        """
        number = _validation.positive_int("n_draws", n_draws)
        fixed = as_seed(seed)
        gathered = CategoricalAccumulator(fixed, keep_draws=False)
        self._classes_last(class_dim)
        axis = _validation.class_axis(class_dim, self._mean.shape)
        drawn = replace(self, precision=None)._sample(number, fixed)
        gathered.add(drawn.movedim(axis + 1, -1))
        return gathered.result()

    def with_precision(self, precision: Any) -> Self:
        return replace(self, precision=_validation.precision_for(precision, self._mean))

    def _rescaled(self, a: Tensor, b: Tensor) -> Self:
        flat = a.reshape(-1)
        joint = None if self._joint is None else self._joint * (flat[:, None] * flat)
        return replace(
            self,
            _mean=self._mean * a + b,
            _epistemic_variance=self._epistemic_variance * a.square(),
            precision=None if self.precision is None else self.precision / a.square(),
            _joint=joint,
        )

    def _log_prob(self, y: Tensor) -> Tensor:
        gap = flat_event((y - self._mean).to(self._wide), 1)
        scores, log_scales = self._whitened(gap)
        constant = 0.5 * gap.shape[1] * math.log(2 * math.pi)
        # E161: log N(y; mean, C), C = Cov f + 1/tau; diagonal if Cov f is not known
        return -0.5 * scores.square().sum(-1) - log_scales.sum(-1) - constant

    def _cdf(self, y: Tensor) -> Tensor:
        variance = self.variance.to(self._wide).clamp(min=_LEAST)
        return torch.special.ndtr((y - self._mean).to(variance) / variance.sqrt())

    def _quantiles(self, levels: Sequence[float]) -> Tensor:
        scores = torch.special.ndtri(torch.tensor(levels, dtype=torch.float64))
        scores = scores.to(self._mean).view(-1, *[1] * self._mean.dim())
        return self._mean + scores * self.std

    def _crps(self, y: Tensor) -> Tensor:
        variance = self.variance.double().clamp(min=_LEAST)
        return mixture_crps(self._mean[None], variance.reciprocal()[None], y)

    def _sample(self, number: int, seed: int) -> Tensor:
        shape = (len(self), math.prod(self._mean.shape[1:]))
        noise = standard_normal(number, shape, seed).to(self._mean.device, self._wide)
        if self._joint is None:
            spread = noise * flat_event(self.std, 1).to(noise)
        else:
            values, axes = torch.linalg.eigh(self.covariance.to(noise))
            root = axes * values.clamp(min=0.0).sqrt().unsqueeze(-2)
            spread = (root @ noise.unsqueeze(-1)).squeeze(-1)
        return self._answer(self._mean + spread.reshape(number, *self._mean.shape))

    @property
    def _wide(self) -> torch.dtype:
        return wide_dtype(self._mean.device)

    def _whitened(self, gap: Tensor) -> tuple[Tensor, Tensor]:
        """Distances (batch, D) in independent standard units, and logs of the units."""
        if self._joint is None:
            std = flat_event(self.std, 1).to(gap)
            if not bool((std > 0).all()):
                raise ParameterError(_NO_DENSITY)
            return gap / std, std.log()
        covariance = self.covariance.to(gap)
        root, failed = torch.linalg.cholesky_ex(covariance)
        units = root.diagonal(dim1=-2, dim2=-1)
        free = units.square() > _TIED * covariance.diagonal(dim1=-2, dim2=-1)
        if bool(failed.any()) or not bool(free.all()):
            raise ParameterError(_NO_DENSITY)
        scores = torch.linalg.solve_triangular(root, gap.unsqueeze(-1), upper=False)
        return scores.squeeze(-1), units.log()

    def _headline(self) -> str:
        rows, event = count_of(len(self), "row"), tuple(self._mean.shape[1:])
        how = f"{self.method} moments" if self.exact else f"{self.method} (approximate)"
        noise = ", without observation noise" if self.precision is None else ""
        return f"{rows} of outputs {event}, {how} as a Gaussian{noise}"
