"""The predictive of a conjugate linear model: a Student-t for each row.

Weights and noise variance integrated out of a Gaussian linear model leave a Student-t
for a new observation. It is exact: no draws are behind it.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self, final

import numpy as np
import torch
from torch import Tensor

from caveat import _validation
from caveat._random import random_uniform, stream_key
from caveat.errors import CaveatWarning, NoAnswerError, ParameterError, ShapeError
from caveat.predictive.base import count_of
from caveat.predictive.crps import log_gamma_step, student_crps
from caveat.predictive.regression import RegressionPredictive


@dataclass(frozen=True, eq=False, repr=False)
class StudentLike(RegressionPredictive):
    """What Student-t predictives share: one output, shape (batch,), and their noise.

    Attributes
    ----------
    noise_scale : Tensor, shape (batch,)
        Scale of the observation noise alone.
    df : Tensor, shape (batch,)
        Degrees of freedom. Up to 2 there is no variance (infinite), up to 1 no mean
        (NaN); asking for what is not there warns. The CRPS is finite above 1/2.

    A scale of 0, which a response that is fitted without error leads to, makes the
    predictive a point: its density is infinite there and 0 elsewhere.
    """

    noise_scale: Tensor
    df: Tensor

    @property
    def noise_variance(self) -> Tensor:
        """Variance of the observation noise, averaged over its posterior."""
        return self.noise_scale.square() * variance_factor(self.df)

    def with_precision(self, precision: Any) -> NoReturn:
        """Not known: the noise variance is integrated out, and with it the weights.

        Parameters
        ----------
        precision : float or Tensor
            Whatever it is, the answer is a :class:`~caveat.errors.NoAnswerError`.
        """
        raise NoAnswerError(
            f"A {type(self).__name__} has its noise variance integrated out together "
            f"with the weights, so there is no precision to exchange. Draw weights and "
            f"variance by sample_posterior of the estimator, and make a "
            f"GaussianPredictive.from_draws(draws, precision=...)."
        )


@final
@dataclass(frozen=True, eq=False, repr=False)
class StudentPredictive(StudentLike):
    """One Student-t per row (ledger E44).

    Attributes
    ----------
    location : Tensor, shape (batch,)
        Centre, and the mean if there is one.
    scale : Tensor, shape (batch,)
        Scale of a new observation: weights and noise.

    Examples
    --------
    >>> import torch
    >>> predictive = StudentPredictive.of(
    ...     torch.tensor([0.0, 1.0]), torch.tensor([2.0, 1.0]), noise_scale=1.0, df=4.0
    ... )
    >>> predictive.variance, predictive.noise_variance
    (tensor([8., 2.]), tensor([2., 2.]))
    >>> predictive.interval(0.9)[1]
    tensor([4.2637, 3.1318])
    """

    location: Tensor
    scale: Tensor

    @classmethod
    def of(
        cls, location: Tensor, scale: Tensor, *, noise_scale: float, df: float
    ) -> "StudentPredictive":
        """From locations and scales of shape (batch,).

        Parameters
        ----------
        location, scale : Tensor, shape (batch,)
            Of the Student-t of each row.
        noise_scale : float
            The part of the scale that is noise.
        df : float
            Degrees of freedom.

        Returns
        -------
        StudentPredictive
        """
        location = _validation.floating("location", location)
        scale = _validation.floating("scale", scale)
        for name, part in (("location", location), ("scale", scale)):
            _validation.finite(name, part)
        if not bool((scale >= 0.0).all()):
            raise ParameterError(f"scale must be 0 or above. Got {float(scale.min())}.")
        if location.ndim != 1 or location.shape != scale.shape:
            raise ShapeError(
                f"location and scale must have the same shape (batch,). Got "
                f"{tuple(location.shape)} and {tuple(scale.shape)}."
            )
        return cls(
            n_draws=0,
            noise_scale=constant(location, "noise_scale", noise_scale),
            df=constant(location, "df", degrees_of_freedom(df)),
            location=location,
            scale=scale,
        )

    @property
    def mean(self) -> Tensor:
        return torch.where(self.df > 1.0, self.location, torch.nan)

    @property
    def epistemic_variance(self) -> Tensor:
        gap = (self.scale.square() - self.noise_scale.square()).clamp(min=0.0)
        return gap * variance_factor(self.df)

    @property
    def mean_error(self) -> Tensor:
        return torch.zeros_like(self.location)

    def _log_prob(self, y: Tensor) -> Tensor:
        # E44: log density of t_df(location, scale)
        return log_density(y, self.location, self.scale, self.df)

    def _cdf(self, y: Tensor) -> Tensor:
        return standard_cdf(scores_of(y, self.location, self.scale), self.df)

    def _quantiles(self, levels: Sequence[float]) -> Tensor:
        scores = torch.stack([standard_quantile(q, self.df) for q in levels])
        return self.location + self.scale * scores

    def _crps(self, y: Tensor) -> Tensor:
        gap, scale, df = (y - self.location).double(), self.scale.double(), self.df
        scores = gap / torch.where(scale > 0.0, scale, 1.0)
        zero, one = torch.zeros_like(scores), torch.ones_like(scores)
        density = log_density(scores, zero, one, df.double()).exp()
        cdf = standard_cdf(scores, df)
        found = scale * student_crps(scores, cdf, density, df.double())
        return torch.where(scale > 0.0, found, gap.abs())

    def _sample(self, number: int, seed: int) -> Tensor:
        return self.location + self.scale * standard_student(number, self.df, seed)

    def _rescaled(self, a: Tensor, b: Tensor) -> Self:
        return replace(
            self,
            noise_scale=self.noise_scale * a.abs(),
            location=self.location * a + b,
            scale=self.scale * a.abs(),
        )

    def _headline(self) -> str:
        return f"{count_of(len(self), 'row')}, exact"

    def _highlights(self) -> dict[str, Tensor]:
        return {"location": self.location, "scale": self.scale, "df": self.df}


def constant(like: Tensor, name: str, value: float) -> Tensor:
    """A finite number of at least 0, of the shape and type of ``like``."""
    if not 0.0 <= value < math.inf:
        raise ParameterError(f"{name} must be finite and 0 or above. Got {value}.")
    return torch.full_like(like, value)


def degrees_of_freedom(value: float) -> float:
    """A finite number above 0."""
    if not 0.0 < value < math.inf:
        raise ParameterError(
            f"df must be finite and above 0. Got {value}; where there is no end to the "
            f"degrees of freedom, a GaussianPredictive.point is what is meant."
        )
    return value


def variance_factor(df: Tensor) -> Tensor:
    """df / (df - 2): squared scale to variance; infinite or NaN where there is none."""
    if bool((df <= 2.0).any()):
        warnings.warn(
            "A Student-t with 2 degrees of freedom or fewer has no variance; it is "
            "given as infinite, or NaN where there is no mean. Quantiles and intervals "
            "do exist.",
            CaveatWarning,
            stacklevel=4,
        )
    factor = df / (df - 2.0)
    return torch.where(
        df > 2.0, factor, torch.where(df > 1.0, torch.inf, torch.nan).to(df)
    )


def log_density(y: Tensor, location: Tensor, scale: Tensor, df: Tensor) -> Tensor:
    """Of a Student-t of these parameters; of a scale of 0, infinite at its location."""
    half = 0.5 * (df + 1.0)
    top = log_gamma_step(0.5 * df) - 0.5 * (df * math.pi).log()
    scores = scores_of(y, location, scale)
    found = top - scale.log() - half * (scores.square() / df).log1p()
    point = torch.where(y == location, torch.inf, -torch.inf).to(found)
    return torch.where(scale > 0.0, found, point)


def scores_of(y: Tensor, location: Tensor, scale: Tensor) -> Tensor:
    """(y - location) / scale; with a scale of 0 on the side of y, itself above."""
    gap = y - location
    point = torch.where(gap >= 0.0, torch.inf, -torch.inf).to(gap)
    return torch.where(scale > 0.0, gap / scale, point)


def standard_cdf(scores: Tensor, df: Tensor) -> Tensor:
    """Cdf of the standard Student-t, in the type of ``scores``."""
    from scipy.special import stdtr  # it takes half a second to import

    found = stdtr(df.numpy(force=True), scores.numpy(force=True))
    return torch.as_tensor(np.asarray(found)).to(scores)


def standard_quantile(level: Any, df: Tensor) -> Tensor:
    """Quantile of the standard Student-t, in the type of ``df``."""
    from scipy.special import stdtrit

    found = stdtrit(df.numpy(force=True), level)
    return torch.as_tensor(np.asarray(found)).to(df)


def standard_student(number: int, df: Tensor, seed: int) -> Tensor:
    """Numbers from the standard Student-t of each row, shape (number, batch)."""
    key = stream_key(seed, "observation noise")
    uniforms = random_uniform(key, range(number), tuple(df.shape))
    return standard_quantile(uniforms.numpy(), df)
