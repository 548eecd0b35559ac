"""The predictives of a conjugate linear model: Student-t, and mixtures of them.

Weights and noise variance integrated out of a Gaussian linear model leave a Student-t
for a new observation. It is exact: no draws are behind it, unless it is a mixture over
masks of which only some were drawn.
"""

import math
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
import torch
from torch import Tensor

from caveat import _validation
from caveat.errors import CaveatWarning, ParameterError, ShapeError
from caveat.predictive.base import DRAWS_FIRST, Predictive, count_of

_ROUNDS = 100  # bisections; each halves the bracket of a quantile


@dataclass(frozen=True, eq=False, repr=False)
class StudentLike(Predictive):
    """What Student-t predictives share.

    Attributes
    ----------
    noise_scale : Tensor, shape (batch,)
        Scale of the observation noise alone.
    df : Tensor, shape (batch,)
        Degrees of freedom. Up to 2 there is no variance (infinite), up to 1 no mean
        (NaN); asking for what is not there warns.
    """

    noise_scale: Tensor
    df: Tensor

    def __len__(self) -> int:
        return len(self.df)

    @property
    @abstractmethod
    def mean(self) -> Tensor:
        """Mean of a new observation; shape (batch,)."""

    @property
    @abstractmethod
    def epistemic_variance(self) -> Tensor:
        """Variance that more data would take away; shape (batch,)."""

    @property
    @abstractmethod
    def mean_error(self) -> Tensor:
        """Monte Carlo standard error of ``mean``; 0 if it is exact."""

    @abstractmethod
    def log_prob(self, y: Tensor) -> Tensor:
        """Log predictive density of observations.

        Parameters
        ----------
        y : Tensor, shape (batch,)
            Of exactly the shape of ``mean``: nothing is broadcast.

        Returns
        -------
        Tensor, shape (batch,)
        """

    @abstractmethod
    def cdf(self, y: Tensor) -> Tensor:
        """Probability that a new observation is at most ``y``.

        Parameters
        ----------
        y : Tensor, shape (batch,)
            Of exactly the shape of ``mean``.

        Returns
        -------
        Tensor, shape (batch,)
        """

    @abstractmethod
    def _quantile(self, level: float) -> Tensor:
        """Quantile of one level; shape (batch,)."""

    @property
    def noise_variance(self) -> Tensor:
        """Variance of the observation noise, averaged over its posterior."""
        return self.noise_scale.square() * _variance_factor(self.df)

    @property
    def variance(self) -> Tensor:
        """Variance of a new observation: epistemic plus noise."""
        return self.epistemic_variance + self.noise_variance

    @property
    def std(self) -> Tensor:
        """Standard deviation of a new observation, the root of ``variance``."""
        return self.variance.sqrt()

    def quantile(self, q: float | Sequence[float]) -> Tensor:
        """Quantiles of a new observation.

        Parameters
        ----------
        q : float or sequence of float
            Levels strictly between 0 and 1.

        Returns
        -------
        Tensor, shape (batch,), or (levels, batch) for a sequence
        """
        answers = [self._quantile(level) for level in _validation.quantile_levels(q)]
        return answers[0] if torch.as_tensor(q).ndim == 0 else torch.stack(answers)

    def interval(self, level: float = 0.95) -> tuple[Tensor, Tensor]:
        """Equal-tailed interval that holds a new observation with ``level``.

        Parameters
        ----------
        level : float, default 0.95
            Probability inside; the same probability is left out on both sides.

        Returns
        -------
        lower, upper : Tensor, shape (batch,)
        """
        tail = 0.5 * (1.0 - _validation.unit_interval("level", level))
        return self._quantile(tail), self._quantile(1.0 - tail)

    def _columns(self) -> dict[str, Tensor]:
        names = "mean std variance epistemic_variance noise_variance mean_error".split()
        return {name: getattr(self, name) for name in names}


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
        if location.ndim != 1 or location.shape != scale.shape:
            raise ShapeError(
                f"location and scale must have the same shape (batch,). Got "
                f"{tuple(location.shape)} and {tuple(scale.shape)}."
            )
        return cls(
            n_draws=0,
            noise_scale=_constant(location, "noise_scale", noise_scale),
            df=_constant(location, "df", df),
            location=location,
            scale=scale,
        )

    @property
    def mean(self) -> Tensor:
        return torch.where(self.df > 1.0, self.location, torch.nan)

    @property
    def epistemic_variance(self) -> Tensor:
        gap = (self.scale.square() - self.noise_scale.square()).clamp(min=0.0)
        return gap * _variance_factor(self.df)

    @property
    def mean_error(self) -> Tensor:
        return torch.zeros_like(self.location)

    def log_prob(self, y: Tensor) -> Tensor:
        y = _validation.target(y, self.location)
        # E44: log density of t_df(location, scale)
        return _log_density(y, self.location, self.scale, self.df)

    def cdf(self, y: Tensor) -> Tensor:
        y = _validation.target(y, self.location)
        return _cdf((y - self.location) / self.scale, self.df)

    def _quantile(self, level: float) -> Tensor:
        return self.location + self.scale * _standard_quantile(level, self.df)

    def _headline(self) -> str:
        return f"{count_of(len(self), 'row')}, exact"

    def _highlights(self) -> dict[str, Tensor]:
        return {"location": self.location, "scale": self.scale, "df": self.df}


@final
@dataclass(frozen=True, eq=False, repr=False)
class StudentMixturePredictive(StudentLike):
    """A mixture of Student-t per row, all of the same noise and degrees of freedom.

    The literal predictive of a model whose weights are dropped also at test time
    (ledger E51): a component per mask.

    Attributes
    ----------
    locations, scales, log_weights : Tensor, shape (components, batch)
        Of the components; the weights of a row sum to 1.
    n_draws : int
        Number of masks drawn; 0 if the components are all there are.

    Examples
    --------
    >>> import torch
    >>> predictive = StudentMixturePredictive.of(
    ...     torch.tensor([[-1.0], [1.0]]), torch.ones(2, 1),
    ...     torch.tensor([[0.5], [0.5]]).log(), noise_scale=1.0, df=4.0,
    ... )
    >>> predictive.mean, predictive.variance
    (tensor([0.]), tensor([3.]))
    >>> predictive.cdf(torch.zeros(1))
    tensor([0.5000])
    """

    locations: Tensor = field(metadata=DRAWS_FIRST)
    scales: Tensor = field(metadata=DRAWS_FIRST)
    log_weights: Tensor = field(metadata=DRAWS_FIRST)

    @classmethod
    def of(
        cls,
        locations: Tensor,
        scales: Tensor,
        log_weights: Tensor,
        *,
        noise_scale: float,
        df: float,
        n_draws: int = 0,
    ) -> "StudentMixturePredictive":
        """From components of shape (components, batch).

        Parameters
        ----------
        locations, scales, log_weights : Tensor, shape (components, batch)
            Of the components of each row; a weight may be 0.
        noise_scale : float
            The part of the scales that is noise.
        df : float
            Degrees of freedom.
        n_draws : int
            How many masks were drawn, 0 if all were enumerated.

        Returns
        -------
        StudentMixturePredictive
        """
        locations = _validation.floating("locations", locations)
        for name, part in (("scales", scales), ("log_weights", log_weights)):
            if locations.ndim != 2 or part.shape != locations.shape:
                raise ShapeError(
                    f"locations and {name} must have the same shape (components, "
                    f"batch). Got {tuple(locations.shape)} and {tuple(part.shape)}."
                )
        return cls(
            n_draws=n_draws,
            noise_scale=_constant(locations[0], "noise_scale", noise_scale),
            df=_constant(locations[0], "df", df),
            locations=locations,
            scales=scales,
            log_weights=log_weights,
        )

    @property
    def mean(self) -> Tensor:
        return torch.where(self.df > 1.0, self._average(self.locations), torch.nan)

    @property
    def epistemic_variance(self) -> Tensor:
        """Variance over weights and over masks."""
        # E51: Var = E_m[(scale_m² - noise²) df/(df-2)] + Var_m[location_m]
        gap = self.scales.square() - self.noise_scale.square()
        within = self._average(gap.clamp(min=0.0)) * _variance_factor(self.df)
        return within + self._mask_variance()

    @property
    def mean_error(self) -> Tensor:
        if self.n_draws == 0:
            return torch.zeros_like(self.df)
        if self.n_draws == 1:
            return torch.full_like(self.df, torch.inf)
        return (self._mask_variance() / (self.n_draws - 1)).sqrt()

    def log_prob(self, y: Tensor) -> Tensor:
        y = _validation.target(y, self.df)
        # E51: p(y) = sum_m pi(m) t(y; x'(m o mu), h(m o x))
        parts = _log_density(y, self.locations, self.scales, self.df)
        return (self.log_weights + parts).logsumexp(0)

    def cdf(self, y: Tensor) -> Tensor:
        y = _validation.target(y, self.df)
        return self._average(_cdf((y - self.locations) / self.scales, self.df))

    def _average(self, values: Tensor) -> Tensor:
        return (self.log_weights.exp() * values).sum(0)

    def _mask_variance(self) -> Tensor:
        deviation = self.locations - self._average(self.locations)
        return self._average(deviation.square())

    def _quantile(self, level: float) -> Tensor:
        """By bisection between the quantiles of the components."""
        parts = self.locations + self.scales * _standard_quantile(level, self.df)
        present = self.log_weights > -torch.inf
        low = torch.where(present, parts, torch.inf).amin(0)
        high = torch.where(present, parts, -torch.inf).amax(0)
        for _ in range(_ROUNDS):
            middle = 0.5 * (low + high)
            if bool(((middle <= low) | (middle >= high)).all()):
                break
            below = self.cdf(middle) < level
            low, high = (
                torch.where(below, middle, low),
                torch.where(below, high, middle),
            )
        return 0.5 * (low + high)

    def _headline(self) -> str:
        masks = "all masks" if self.n_draws == 0 else count_of(self.n_draws, "mask")
        return f"{count_of(len(self), 'row')}, {masks}"

    def _highlights(self) -> dict[str, Tensor]:
        return {"mean": self._average(self.locations), "df": self.df}


def _constant(like: Tensor, name: str, value: float) -> Tensor:
    if not value >= 0.0:
        raise ParameterError(f"{name} must be 0 or above. Got {value}.")
    return torch.full_like(like, value)


def _variance_factor(df: Tensor) -> Tensor:
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


def _log_density(y: Tensor, location: Tensor, scale: Tensor, df: Tensor) -> Tensor:
    half = 0.5 * (df + 1.0)
    constant = torch.lgamma(half) - torch.lgamma(0.5 * df) - 0.5 * (df * math.pi).log()
    squares = ((y - location) / scale).square()
    return constant - scale.log() - half * (squares / df).log1p()


def _cdf(scores: Tensor, df: Tensor) -> Tensor:
    from scipy.special import stdtr  # it takes half a second to import

    found = stdtr(df.numpy(force=True), scores.numpy(force=True))
    return torch.as_tensor(np.asarray(found)).to(scores)


def _standard_quantile(level: float, df: Tensor) -> Tensor:
    from scipy.special import stdtrit

    found = stdtrit(df.numpy(force=True), level)
    return torch.as_tensor(np.asarray(found)).to(df)
