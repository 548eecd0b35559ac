"""Figures of predictives: ``from_…`` computes, ``plot`` draws and returns itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from numpy.typing import ArrayLike, NDArray

from caveat.errors import ParameterError, ShapeError
from caveat.evaluation.axes import BLUE, COLOURS, axes_of
from caveat.predictive import CategoricalPredictive, GaussianPredictive

HALF_SDS = (0.5, 1.0, 1.5, 2.0)  # the shades of paper 001, figs 2 and 3

Array = NDArray[np.float64]


@dataclass(eq=False)
class PredictiveDisplay:
    """Predictive mean of a regression with shades of half a standard deviation.

    As in figs 2 and 3 of seed paper 001: each shade is half a standard deviation of a
    new observation (noise included), up to plus and minus two.

    Attributes
    ----------
    x, mean, std : array of float, shape (rows,)
        Sorted by x.
    ax_, figure_
        Where it was drawn; set by ``plot``.

    Examples
    --------
    >>> import torch
    >>> draws = torch.randn(50, 9, 1, generator=torch.Generator().manual_seed(0))
    >>> predictive = GaussianPredictive.from_draws(draws, precision=1.0)
    >>> display = PredictiveDisplay.from_predictive(range(9), predictive)
    >>> len(display.ax_.lines), len(display.ax_.collections)  # a line, four shades
    (1, 4)
    """

    x: Array
    mean: Array
    std: Array
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    @classmethod
    def from_predictive(
        cls,
        x: ArrayLike,
        predictive: GaussianPredictive,
        *,
        scale: float = 1.0,
        offset: ArrayLike = 0.0,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Take what is drawn from a predictive with one output, and draw it.

        Parameters
        ----------
        x : array, shape (rows,)
            Where the rows stand on the axis.
        predictive : GaussianPredictive
            One output per row.
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
        place = np.asarray(x, dtype=np.float64).reshape(-1)
        mean, std = (_one_output(v) for v in (predictive.mean, predictive.std))
        if len(place) != len(mean):
            raise ShapeError(
                f"x must have one value per row of the predictive, {len(mean)}. "
                f"Got {len(place)}."
            )
        order = np.argsort(place, kind="stable")
        shown = scale * mean + np.asarray(offset, dtype=np.float64)
        display = cls(place[order], shown[order], (abs(scale) * std)[order])
        return display.plot(ax, **style)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        color: str = BLUE,
        label: str | None = "predictive mean",
        **line: Any,
    ) -> Self:
        """Draw the mean and its shades.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure by default.
        color : str
            Of the line and, lighter, of the shades.
        label : str or None
            Of the line, for the legend.
        **line
            Passed to ``Axes.plot``.

        Returns
        -------
        PredictiveDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        self.ax_, self.figure_ = axes_of(ax)
        for number, width in enumerate(reversed(HALF_SDS)):
            low, high = self.mean - width * self.std, self.mean + width * self.std
            shade = "±2 sd, a shade per half sd" if number == 0 and label else None
            self.ax_.fill_between(
                self.x, low, high, color=color, alpha=0.15, linewidth=0, label=shade
            )
        self.ax_.plot(self.x, self.mean, color=color, label=label, **line)
        return self


@dataclass(eq=False)
class SoftmaxScatterDisplay:
    """Every draw's logits and probabilities of a few classes, row by row.

    As in fig. 4 of seed paper 001: rows side by side, one point per draw and class.

    Attributes
    ----------
    classes : tuple of int
        The classes that are shown.
    logits, probs : array of float, shape (draws, rows, classes shown)
        Input and output of the softmax.
    ax_, figure_
        Where it was drawn last; set by ``plot``.

    Examples
    --------
    >>> import torch
    >>> logits = torch.randn(50, 3, 4, generator=torch.Generator().manual_seed(0))
    >>> predictive = CategoricalPredictive.from_logits(logits)
    >>> display = SoftmaxScatterDisplay.from_predictive(predictive, classes=[0, 2])
    >>> display.probs.shape, len(display.ax_.collections)
    ((50, 3, 2), 2)
    """

    classes: tuple[int, ...]
    logits: Array
    probs: Array
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    @classmethod
    def from_predictive(
        cls,
        predictive: CategoricalPredictive,
        *,
        classes: Sequence[int] | None = None,
        ax: Axes | None = None,
        inputs: bool = False,
    ) -> Self:
        """Take the draws of a classification, and draw their probabilities.

        Parameters
        ----------
        predictive : CategoricalPredictive
            With its draws kept, and one label per row.
        classes : sequence of int, optional
            Which to show; by default those that are the label of some row.
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
        logits = draws.double()
        probs = logits.softmax(-1)
        shown = [v[..., list(chosen)].numpy(force=True) for v in (logits, probs)]
        return cls(chosen, *shown).plot(ax, inputs=inputs)

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
        self.ax_, self.figure_ = axes_of(ax)
        shown = self.logits if inputs else self.probs  # shape: (draws, rows, classes)
        n_draws, n_rows, n_classes = shown.shape
        lane = 0.8 / n_classes  # each class beside the others within its row
        style = {"s": 9, "alpha": 0.35, "linewidths": 0, **points}
        for number, name in enumerate(self.classes):
            centre = np.arange(n_rows) + (number - (n_classes - 1) / 2) * lane
            spread = np.linspace(-0.35, 0.35, n_draws) * lane
            x = centre[None, :] + spread[:, None]
            color = colors[number % len(colors)]
            y = shown[:, :, number]
            self.ax_.scatter(x, y, color=color, label=f"class {name}", **style)
        return self


def _one_output(values: torch.Tensor) -> Array:
    if values.numel() != len(values):
        raise ShapeError(
            f"The predictive must have one output per row. Got outputs of shape "
            f"{tuple(values.shape[1:])}; show one at a time, made with output=."
        )
    return values.reshape(-1).double().numpy(force=True)


def _classes(classes: Sequence[int], n_classes: int) -> tuple[int, ...]:
    if not classes or not all(0 <= c < n_classes for c in classes):
        raise ParameterError(
            f"classes must name at least one class from 0 to {n_classes - 1}. "
            f"Got {list(classes)}."
        )
    return tuple(classes)
