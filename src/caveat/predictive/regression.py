"""The regression side of the waist: the predictive of real numbers."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from caveat import _validation
from caveat._upward import display
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.predictive.base import Predictive


@dataclass(frozen=True, eq=False, repr=False)
class RegressionPredictive(Predictive):
    """A distribution over the outputs of each row.

    What all regressions answer is said here, once. Answers are in the type of ``mean``
    and in the units of y; densities are joint over the outputs of a row, quantiles,
    intervals and scores are of each output on its own.
    """

    @property
    @abstractmethod
    def mean(self) -> Tensor:
        """Mean of a new observation; shape (batch, *event)."""

    @property
    @abstractmethod
    def epistemic_variance(self) -> Tensor:
        """Variance that more data would take away; shape (batch, *event)."""

    @property
    @abstractmethod
    def noise_variance(self) -> Tensor:
        """Variance of the observation noise; shape (batch, *event)."""

    @property
    def variance(self) -> Tensor:
        """Variance of a new observation: epistemic plus noise (ledger E2; eq. 10)."""
        # E2: Var y = 1/tau + (1/T) sum_t f_t^2 - mean^2
        return self.epistemic_variance + self.noise_variance

    @property
    def std(self) -> Tensor:
        """Standard deviation of a new observation, the root of ``variance``."""
        return self.variance.sqrt()

    def log_prob(self, y: Any) -> Tensor:
        """Log predictive density of observations.

        Parameters
        ----------
        y : Tensor or array, shape (batch, *event)
            Of exactly the shape of ``mean``: nothing is broadcast.

        Returns
        -------
        Tensor, shape (batch,)
            Joint over the event, in units of y.
        """
        return self._answer(self._log_prob(self._target(y)))

    def cdf(self, y: Any) -> Tensor:
        """Probability that a new observation is at most ``y``.

        Parameters
        ----------
        y : Tensor or array, shape (batch, *event)
            Of exactly the shape of ``mean``.

        Returns
        -------
        Tensor, shape (batch, *event)
            Of each output on its own.
        """
        return self._answer(self._cdf(self._target(y)))

    def quantile(self, q: float | Sequence[float]) -> Tensor:
        """Quantiles of a new observation, of each output on its own.

        Parameters
        ----------
        q : float or sequence of float
            Levels strictly between 0 and 1.

        Returns
        -------
        Tensor, shape (batch, *event), or (levels, batch, *event) for a sequence
        """
        found = self._answer(self._quantiles(_validation.quantile_levels(q)))
        return found[0] if torch.as_tensor(q).ndim == 0 else found

    def interval(self, level: float = 0.95) -> tuple[Tensor, Tensor]:
        """Equal-tailed interval that holds a new observation with ``level``.

        Parameters
        ----------
        level : float, default 0.95
            Probability inside; the same probability is left out on both sides.

        Returns
        -------
        lower, upper : Tensor, shape (batch, *event)
        """
        tail = 0.5 * (1.0 - _validation.unit_interval("level", level))
        lower, upper = self._answer(self._quantiles([tail, 1.0 - tail]))
        return lower, upper

    def inside(self, y: Any, level: float | Sequence[float]) -> Tensor:
        """Whether observations lie in the interval of a level.

        Parameters
        ----------
        y : Tensor or array, shape (batch, *event)
            Of exactly the shape of ``mean``.
        level : float or sequence of float
            As for :meth:`interval`.

        Returns
        -------
        Tensor of bool, (batch, *event), or (levels, batch, *event) for a sequence
            Told by ``cdf``, so that no quantile has to be solved for.
        """
        depth = (2.0 * self._cdf(self._target(y)) - 1.0).abs()
        found = [depth <= one for one in _validation.quantile_levels(level, "level")]
        return found[0] if torch.as_tensor(level).ndim == 0 else torch.stack(found)

    def crps(self, y: Any) -> Tensor:
        """Continuous ranked probability score of observations; lower is better.

        CRPS(F, y) = E|X - y| - E|X - X'| / 2 for X and X' distributed as F.

        Parameters
        ----------
        y : Tensor or array, shape (batch, *event)
            Of exactly the shape of ``mean``.

        Returns
        -------
        Tensor, shape (batch, *event)
            In units of y, of each output on its own.
        """
        return self._answer(self._crps(self._target(y)))

    @abstractmethod
    def with_precision(self, precision: Any) -> Self:
        """The same function under another observation noise.

        Parameters
        ----------
        precision : float or Tensor
            tau in units of 1/y²: a number, one per output, or one per row (batch, 1).

        Returns
        -------
        RegressionPredictive
            Of the same kind. Where the noise cannot be told from the rest, a
            :class:`~caveat.errors.NoAnswerError`.
        """

    def scale_precision(self, factor: float) -> Self:
        """The same with every precision of the observation noise times a factor.

        Parameters
        ----------
        factor : float
            Above 0; below 1 it makes predictions less sure.

        Returns
        -------
        RegressionPredictive
            Of the same kind.
        """
        factor = _validation.positive("factor", factor)
        noise = self.noise_variance
        if not bool((noise > 0).all()):
            raise ParameterError(
                "There is no observation noise whose precision could be scaled. Give "
                "it one first: predictive.with_precision(tau)."
            )
        return self.with_precision(factor * noise.reciprocal())

    def rescale(self, scale: Any, shift: Any = 0.0) -> Self:
        """The predictive of ``scale * y + shift``: the same in other units.

        Parameters
        ----------
        scale : float or Tensor
            Finite and not 0; one number, or one per output. It may be negative.
        shift : float or Tensor, default 0
            One number, or one per output.

        Returns
        -------
        RegressionPredictive
            Of the same kind; densities are divided by abs(``scale``), precisions by
            its square (ledger E18).
        """
        a = _per_output("scale", scale, self.mean)
        b = _per_output("shift", shift, self.mean)
        if not bool((a != 0).all()):
            raise ParameterError(f"scale must not be 0. Got {scale!r}.")
        return self._rescaled(a, b)

    def __len__(self) -> int:
        return len(self.mean)

    @abstractmethod
    def _log_prob(self, y: Tensor) -> Tensor:
        """Log density of checked observations, shape (batch,)."""

    @abstractmethod
    def _cdf(self, y: Tensor) -> Tensor:
        """Cdf at checked observations, in the widest type there is."""

    @abstractmethod
    def _quantiles(self, levels: Sequence[float]) -> Tensor:
        """Quantiles of checked levels, shape (levels, batch, *event)."""

    @abstractmethod
    def _crps(self, y: Tensor) -> Tensor:
        """Score of checked observations, shape (batch, *event)."""

    @abstractmethod
    def _rescaled(self, a: Tensor, b: Tensor) -> Self:
        """Of a y + b, with a and b of the shape of the event."""

    def _target(self, y: Any) -> Tensor:
        return _validation.target(_validation.as_tensor(y, real=True), self.mean)

    def _answer(self, values: Tensor) -> Tensor:
        return values.to(self.mean.dtype)

    def _columns(self) -> dict[str, Tensor]:
        names = "mean std variance epistemic_variance noise_variance mean_error".split()
        return {name: getattr(self, name) for name in names}

    def _highlights(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "std": self.std}

    def _facts(self) -> dict[str, str]:
        variance = self.variance.double()
        share = (self.epistemic_variance.double() / variance).nanmean().item()
        error = (self.mean_error.double() / self.std.double()).max().item()
        return {
            "not known, of the variance": f"{share:.0%} on average; the rest is noise",
            "Monte Carlo error of the mean": f"at most {error:.2g} std",
        }

    def _interval_columns(self, level: float | None) -> dict[str, Any]:
        if level is None:
            return {}
        lower, upper = self.interval(level)
        return {"lower": lower.numpy(force=True), "upper": upper.numpy(force=True)}

    def plot(self, x: Any = None, *, ax: Any = None, **style: Any) -> Any:
        """Draw mean, bands and, if asked, a fan of function draws along an axis.

        Outputs of shape (height, width), more than seven of them, are drawn as maps:
        mean and standard deviations of one row.

        Parameters
        ----------
        x : array, shape (rows,), optional
            Where the rows stand: numbers or dates; by default at 0, 1, 2, …
        ax : Axes, optional
            Where to draw (several of them for maps); by default a new figure, with
            names of its axes and a legend.
        **style
            As for :meth:`caveat.evaluation.PredictiveDisplay.from_predictive`:
            ``level=0.9`` for intervals, ``fan=20`` for draws, ``output=0`` for one of
            several outputs. For maps ``row=``, as for
            :meth:`caveat.evaluation.MapDisplay.from_predictive`.

        Returns
        -------
        PredictiveDisplay or MapDisplay
            Drawn, with ``ax_`` and ``figure_``.
        """
        sizes = [size for size in self.mean.shape[1:] if size != 1]
        is_picture = len(sizes) == 2 and sizes[0] * sizes[1] > 7  # lines, up to seven
        if x is None and "output" not in style and is_picture:
            maps = display("caveat.evaluation.maps:MapDisplay")
            return maps.from_predictive(self, ax=ax, **style)
        lines = display("caveat.evaluation.displays:PredictiveDisplay")
        places = range(len(self)) if x is None else x
        drawn = lines.from_predictive(predictive=self, x=places, ax=ax, **style)
        if ax is None:
            across = "row" if x is None else getattr(x, "name", None) or "x"
            drawn.ax_.set(xlabel=across, ylabel="y")
            if x is None:
                drawn.ax_.xaxis.get_major_locator().set_params(integer=True)
            drawn.ax_.legend(fontsize="small", frameon=False)
        return drawn


def _per_output(name: str, value: Any, mean: Tensor) -> Tensor:
    """A finite number, or one per output, in the shape of the event of ``mean``."""
    try:
        number = torch.as_tensor(value, dtype=mean.dtype, device=mean.device).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputTypeError(
            f"{name} must be a number or one per output. Got {value!r}."
        ) from error
    event = mean.shape[1:]
    try:
        return _validation.finite(name, number).expand(event)
    except RuntimeError:
        raise ShapeError(
            f"{name} must be a number or one per output {tuple(event)}. "
            f"Got the shape {tuple(number.shape)}."
        ) from None
