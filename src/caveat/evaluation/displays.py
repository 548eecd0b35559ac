"""Figures of predictives themselves: along an axis, and draw by draw."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.dates import date2num
from numpy.typing import ArrayLike, NDArray

from caveat._validation import class_names, positive_int, unit_interval
from caveat.errors import ParameterError, ShapeError
from caveat.evaluation.axes import (
    COLOURS,
    DASHES,
    MARKERS,
    Display,
    LineDisplay,
    shade,
)
from caveat.evaluation.scores import as_array
from caveat.evaluation.targets import regression_of
from caveat.predictive import ClassificationPredictive, RegressionPredictive

HALF_SDS = (0.5, 1.0, 1.5, 2.0)  # the shades of paper 001, figs 2 and 3

Array = NDArray[np.float64]


@final
@dataclass(eq=False)
class PredictiveDisplay(LineDisplay):
    """Predictive mean of a regression with bands around it, and a fan of draws.

    As in figs 2 and 3 of paper 001: each shade is half a standard deviation of a
    new observation (noise included), up to plus and minus two. With ``level`` bands are
    intervals in their place, right also of predictives that are no Gaussians.

    Attributes
    ----------
    x : array of float, shape (rows,)
        Sorted.
    mean, std : array of float, shape (rows,) or (rows, outputs)
        In the order of x, as all that follows.
    bands : list of pairs of arrays
        Lower and upper ends, widest first.
    fan : array of float, shape (draws shown, rows) or (draws shown, rows, outputs)
        Function draws.
    outputs : tuple of int
        Numbers of the outputs that are shown.
    level : tuple of float
        Of the intervals; empty for shades.
    is_time : bool
        Whether x are dates, in matplotlib's days.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import GaussianPredictive
    >>> draws = torch.randn(50, 9, 1, generator=torch.Generator().manual_seed(0))
    >>> predictive = GaussianPredictive.from_draws(draws, precision=1.0)
    >>> display = PredictiveDisplay.from_predictive(predictive, range(9))
    >>> len(display.ax_.lines), len(display.ax_.collections)  # a line, four shades
    (1, 4)
    """

    x: Array
    mean: Array
    std: Array
    bands: list[tuple[Array, Array]]
    fan: Array
    outputs: tuple[int, ...]
    level: tuple[float, ...] = ()
    is_time: bool = False

    @classmethod
    def from_predictive(
        cls,
        predictive: RegressionPredictive,
        x: ArrayLike,
        *,
        level: float | Sequence[float] | None = None,
        fan: int = 0,
        output: int | Sequence[int] | None = None,
        scale: float = 1.0,
        offset: ArrayLike = 0.0,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Take what is drawn from a predictive, and draw it.

        Parameters
        ----------
        predictive : RegressionPredictive
            With at least one row.
        x : array, shape (rows,)
            Where the rows stand on the axis: numbers, or dates.
        level : float or sequence of float, optional
            Bands are the intervals of these levels; by default shades of half a
            standard deviation.
        fan : int, default 0
            How many draws to show as thin lines; they must be kept. A draw is a
            function if rows share their masks, as they do by default.
        output : int or sequence of int, optional
            Which outputs, counted through the event; by default all, up to seven.
        scale, offset : float or array of shape (rows,)
            The figure shows ``scale * y + offset``: the way back from standardised
            targets to their units.
        ax : Axes, optional
            Where to draw; a new figure by default.
        **style
            As for :meth:`plot`.

        Returns
        -------
        PredictiveDisplay
            Drawn.
        """
        predictive, is_time = regression_of(predictive), _is_time(x)
        if is_time:
            x = date2num(np.asarray(x))  # type: ignore[no-untyped-call]
        place = _places(predictive, x)
        chosen = _outputs(predictive.mean, output)
        order = np.argsort(place, kind="stable")
        shift = np.asarray(offset, dtype=np.float64)
        shift = shift.reshape(-1, 1) if shift.ndim else shift

        def shown(values: torch.Tensor, n_axes: int = 1) -> Array:
            drawn = scale * _flat(values, n_axes)[..., list(chosen)] + shift
            return _narrow(drawn[..., order, :])

        levels = _levels(level)
        mean = shown(predictive.mean)
        width = _flat(predictive.std, 1)[:, list(chosen)]
        std = _narrow(abs(scale) * width[order])
        bands = [(mean - half * std, mean + half * std) for half in HALF_SDS[::-1]]
        if levels:
            ends = (map(shown, predictive.interval(p)) for p in levels)
            bands = [(np.minimum(a, b), np.maximum(a, b)) for a, b in ends]
        _check_finite(bands)
        lines = shown(_fan(predictive, fan), 2)
        place = place[order]
        display = cls(place, mean, std, bands, lines, chosen, levels, is_time)
        return display.plot(ax, **style)

    def _draw(self, ax: Axes, label: str | None, line: dict[str, Any]) -> None:
        if self.is_time:
            ax.xaxis_date()
        if len(self.x) == 1:  # a line of one row would not be seen
            ax.set_xlim(self.x[0] - 1, self.x[0] + 1)
        if len(self.outputs) == 1:
            return self._draw_one(ax, label, line, None)
        for number, output in enumerate(self.outputs):
            own = {"color": COLOURS[number], "linestyle": DASHES[number]}
            name = f"output {output}" if label is None else f"{label}, output {output}"
            rest = {k: v for k, v in line.items() if k != "color"}
            self._draw_one(ax, name, {**own, **rest}, number)
        return None

    def _draw_one(
        self, ax: Axes, label: str | None, line: dict[str, Any], which: int | None
    ) -> None:
        opacity = 0.15 if len(self.bands) > 2 else 0.25
        for number, (low, high) in enumerate(self.bands):
            name = self._band_name(number) if label is None or which is None else None
            style = shade(line, opacity)
            ends = self._along(_part(low, which)), self._along(_part(high, which))
            ax.fill_between(self._along(), *ends, **style)
            if name is not None:
                # A band lies upon those before it: the legend has what is seen of it.
                seen = {**style, "alpha": 1 - (1 - opacity) ** (number + 1)}
                ax.fill([], [], label=name, **seen)
        thin = {"color": line["color"], "alpha": 0.35, "linewidth": 0.6}
        for number, values in enumerate(self.fan):
            name = f"{len(self.fan)} draws" if number == 0 and which is None else None
            own = self._along(_part(values, which))
            ax.plot(self._along(), own, label=name, **thin)
        name = "predictive mean" if label is None else label
        mean = self._along(_part(self.mean, which))
        ax.plot(self._along(), mean, label=name, **line)

    def _along(self, values: Array | None = None) -> Array:
        """Values along x, or x itself; of a single row both ends of a short bar."""
        if len(self.x) > 1:
            return self.x if values is None else values
        if values is None:
            return self.x + np.array([-0.25, 0.25])
        return values.repeat(2)

    def _band_name(self, number: int) -> str | None:
        if self.level:
            return f"{self.level[number]:.4g} interval"
        return "±2 sd, a shade per half sd" if number == 0 else None


@final
@dataclass(eq=False)
class SoftmaxScatterDisplay(Display):
    """Every draw's logits and probabilities of a few classes, row by row.

    As in fig. 4 of paper 001: rows side by side, one point per draw and class.

    Attributes
    ----------
    classes : tuple of int
        The classes that are shown.
    names : tuple of str
        What they are called.
    logits, probs : array of float, shape (draws, rows, classes shown)
        Input and output of the softmax.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import CategoricalPredictive
    >>> logits = torch.randn(50, 3, 4, generator=torch.Generator().manual_seed(0))
    >>> predictive = CategoricalPredictive.from_logits(logits)
    >>> display = SoftmaxScatterDisplay.from_predictive(predictive, classes=[0, 2])
    >>> display.probs.shape, len(display.ax_.collections)
    ((50, 3, 2), 2)
    """

    classes: tuple[int, ...]
    names: tuple[str, ...]
    logits: Array
    probs: Array

    @classmethod
    def from_predictive(
        cls,
        predictive: ClassificationPredictive,
        *,
        classes: Sequence[int] | None = None,
        names: Sequence[Any] | None = None,
        ax: Axes | None = None,
        inputs: bool = False,
    ) -> Self:
        """Take the draws of a classification, and draw their probabilities.

        Parameters
        ----------
        predictive : ClassificationPredictive
            With its draws kept, and one label per row.
        classes : sequence of int, optional
            Which to show; by default those that are the label of some row.
        names : sequence, optional
            Of all classes; by default their numbers.
        ax : Axes, optional
            Where to draw; a new figure by default.
        inputs : bool
            Draw the inputs of the softmax instead of its outputs.

        Returns
        -------
        SoftmaxScatterDisplay
            Drawn.
        """
        draws = predictive.draws
        if draws.ndim != 3:
            raise ShapeError(
                f"The predictive must have one label per row: draws of shape (draws, "
                f"batch, classes). Got {tuple(draws.shape)}."
            )
        if classes is None:
            classes = sorted(set(predictive.label.tolist()))
        chosen = _classes(classes, draws.shape[-1])
        every = range(draws.shape[-1])
        called = [f"class {k}" for k in every] if names is None else list(names)
        called = class_names(called, len(every))
        logits = draws.double()
        probs = logits.softmax(-1)
        shown = [v[..., list(chosen)].numpy(force=True) for v in (logits, probs)]
        own = tuple(str(called[k]) for k in chosen)
        return cls(chosen, own, *shown).plot(ax, inputs=inputs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        inputs: bool = False,
        colors: Sequence[str] = COLOURS,
        **points: Any,
    ) -> Self:
        """Draw a point per draw, row and class.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure by default.
        inputs : bool
            Draw the inputs of the softmax instead of its outputs.
        colors : sequence of str
            One per class, repeated if there are more classes.
        **points
            Passed to ``Axes.scatter``.

        Returns
        -------
        SoftmaxScatterDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        ax = self._open(ax)
        shown = self.logits if inputs else self.probs  # shape: (draws, rows, classes)
        n_draws, n_rows, n_classes = shown.shape
        lane = 0.8 / n_classes  # each class beside the others within its row
        style = {"s": 9, "alpha": 0.35, "linewidths": 0, **points}
        for number, name in enumerate(self.names):
            centre = np.arange(n_rows) + (number - (n_classes - 1) / 2) * lane
            spread = np.linspace(-0.35, 0.35, n_draws) * lane
            x = centre[None, :] + spread[:, None]
            color = colors[number % len(colors)]
            y = shown[:, :, number]
            own = {"marker": MARKERS[number % len(MARKERS)], **style}
            ax.scatter(x, y, color=color, label=name, **own)
        return self


def _is_time(x: Any) -> bool:
    """Whether these are dates, of numpy or in a column of a frame."""
    found = x.to_numpy() if hasattr(x, "to_numpy") else x
    return isinstance(found, np.ndarray) and found.dtype.kind == "M"


def _places(predictive: RegressionPredictive, x: Any) -> Array:
    """Where rows stand; one finite number for each."""
    place, n_rows = as_array("x", x).reshape(-1), len(predictive)
    if len(place) != n_rows:
        raise ShapeError(
            f"x must have one value per row of the predictive, {n_rows}. "
            f"Got {len(place)}."
        )
    if not np.isfinite(place).all():
        raise ParameterError("x must be finite. Got NaN or infinity among its values.")
    return place


def _outputs(mean: torch.Tensor, output: int | Sequence[int] | None) -> tuple[int, ...]:
    """Which outputs are shown, counted through the event."""
    number = mean[0].numel()
    if output is None and number > len(COLOURS):
        raise ShapeError(
            f"At most {len(COLOURS)} outputs can be told apart, and a row has {number} "
            f"(shape {tuple(mean.shape[1:])}). Choose with output=, such as output=0."
        )
    chosen = range(number) if output is None else np.atleast_1d(np.asarray(output))
    whole = [c for c in chosen if isinstance(c, int | np.integer) and 0 <= c < number]
    if len(whole) != len(chosen) or not 0 < len(whole) <= len(COLOURS):
        raise ParameterError(
            f"output must be 1 to {len(COLOURS)} whole numbers from 0 to {number - 1}. "
            f"Got {output!r}."
        )
    return tuple(int(c) for c in whole)


def _levels(level: float | Sequence[float] | None) -> tuple[float, ...]:
    """Levels of bands, widest first."""
    if level is None:
        return ()
    given = [level] if isinstance(level, float | int) else list(level)
    if not given:
        raise ParameterError("level must be a number or several. Got none.")
    return tuple(sorted((unit_interval("level", p) for p in given), reverse=True))


def _fan(predictive: RegressionPredictive, fan: int) -> torch.Tensor:
    """The first draws; (0, rows, ...) of no fan."""
    if fan == 0 and not isinstance(fan, bool):
        return predictive.mean[None][:0]
    number = positive_int("fan", fan)
    draws = predictive.draws
    if number > len(draws):
        raise ParameterError(f"fan must be at most the {len(draws)} draws. Got {fan}.")
    return draws[:number]


def _flat(values: torch.Tensor, n_axes: int) -> Array:
    """The axes of the event as one, after the first ``n_axes``."""
    event = values.shape[n_axes:].numel()
    flat = values.reshape(*values.shape[:n_axes], event)
    return flat.double().numpy(force=True)


def _narrow(values: Array) -> Array:
    """Without the last axis, if there is one output."""
    return values[..., 0] if values.shape[-1] == 1 else values


def _part(values: Array, which: int | None) -> Array:
    """One of several outputs; all there is, if there is one."""
    return values if which is None else values[..., which]


def _check_finite(bands: Sequence[tuple[Array, Array]]) -> None:
    if not all(np.isfinite(end).all() for band in bands for end in band):
        raise ParameterError(
            "A band of this predictive is infinite or NaN: tails so heavy have no "
            "standard deviation. Give level=, such as level=0.9, for its intervals."
        )


def _classes(classes: Sequence[int], n_classes: int) -> tuple[int, ...]:
    if not classes or not all(0 <= c < n_classes for c in classes):
        raise ParameterError(
            f"classes must name at least one class from 0 to {n_classes - 1}. "
            f"Got {list(classes)}."
        )
    return tuple(classes)
