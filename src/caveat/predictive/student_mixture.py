"""The predictive of a linear model whose weights are dropped at test time, too.

A mixture of Student-t, a component per mask: exact if there is one for every mask, else
of masks that were drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self, final

import torch
from torch import Tensor

from caveat import _validation
from caveat._random import random_uniform, stream_key
from caveat.errors import ShapeError
from caveat.predictive.base import DRAWS_FIRST, count_of
from caveat.predictive.crps import integrated_crps
from caveat.predictive.student import (
    StudentLike,
    constant,
    degrees_of_freedom,
    log_density,
    scores_of,
    standard_cdf,
    standard_quantile,
    standard_student,
    variance_factor,
)
from caveat.predictive.tally import sampled_labels

_ROUNDS = 100  # bisections; each halves the bracket of a quantile


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
            noise_scale=constant(locations[0], "noise_scale", noise_scale),
            df=constant(locations[0], "df", degrees_of_freedom(df)),
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
        within = self._average(gap.clamp(min=0.0)) * variance_factor(self.df)
        return within + self._mask_variance()

    @property
    def mean_error(self) -> Tensor:
        if self.n_draws == 0:
            return torch.zeros_like(self.df)
        if self.n_draws == 1:
            return torch.full_like(self.df, torch.inf)
        return (self._mask_variance() / (self.n_draws - 1)).sqrt()

    def _log_prob(self, y: Tensor) -> Tensor:
        # E51: p(y) = sum_m pi(m) t(y; x'(m o mu), h(m o x))
        parts = log_density(y, self.locations, self.scales, self.df)
        return (self.log_weights + parts).logsumexp(0)

    def _cdf(self, y: Tensor) -> Tensor:
        scores = scores_of(y, self.locations, self.scales)
        return self._average(standard_cdf(scores, self.df))

    def _quantiles(self, levels: Sequence[float]) -> Tensor:
        return torch.stack([self._quantile(level) for level in levels])

    def _crps(self, y: Tensor) -> Tensor:
        lower, upper = self.interval(0.5)
        width = upper - lower
        points = (self.scales == 0.0).all(0)
        if bool(points.all()):
            return self._crps_of_points(y)
        found = integrated_crps(self._cdf, y, torch.where(points, 1.0, width))
        return torch.where(points, self._crps_of_points(y).to(found), found)

    def _crps_of_points(self, y: Tensor) -> Tensor:
        """If all components are points: E|X - y| - E|X - X'| / 2."""
        distance = self._average((y - self.locations).abs())
        places, order = self.locations.sort(0)
        below = self.log_weights.exp().gather(0, order).cumsum(0)[:-1]
        # E106: E|X - X'| / 2 = int F (1 - F) dx
        return distance - (places.diff(dim=0) * below * (1.0 - below)).sum(0)

    def _sample(self, number: int, seed: int) -> Tensor:
        key, rows = stream_key(seed, "observed mask"), torch.arange(len(self))
        uniforms = random_uniform(key, range(number), (len(self), 1)).to(self.df.device)
        which = sampled_labels(self.log_weights.exp().T.to(uniforms), uniforms)
        location, scale = self.locations[which, rows], self.scales[which, rows]
        return location + scale * standard_student(number, self.df, seed)

    def _rescaled(self, a: Tensor, b: Tensor) -> Self:
        return replace(
            self,
            noise_scale=self.noise_scale * a.abs(),
            locations=self.locations * a + b,
            scales=self.scales * a.abs(),
        )

    def _average(self, values: Tensor) -> Tensor:
        return (self.log_weights.exp() * values).sum(0)

    def _mask_variance(self) -> Tensor:
        deviation = self.locations - self._average(self.locations)
        return self._average(deviation.square())

    def _quantile(self, level: float) -> Tensor:
        """By bisection between the quantiles of the components."""
        parts = self.locations + self.scales * standard_quantile(level, self.df)
        present = self.log_weights > -torch.inf
        low = torch.where(present, parts, torch.inf).amin(0)
        high = torch.where(present, parts, -torch.inf).amax(0)
        for _ in range(_ROUNDS):
            middle = 0.5 * (low + high)
            if bool(((middle <= low) | (middle >= high)).all()):
                break
            below = self._cdf(middle) < level
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
