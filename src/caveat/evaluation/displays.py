"""Figures of predictives themselves: along an axis, and draw by draw."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from caveat.errors import ParameterError, ShapeError
from caveat.evaluation.axes import COLOURS, Display, LineDisplay, shade
from caveat.evaluation.scores import as_array
from caveat.evaluation.targets import regression_of
from caveat.predictive import ClassificationPredictive, RegressionPredictive

HALF_SDS = (0.5, 1.0, 1.5, 2.0)  # the shades of paper 001, figs 2 and 3

Array = NDArray[np.float64]


@final
@dataclass(eq=False)
class PredictiveDisplay(LineDisplay):
    """Predictive mean of a regression with shades of half a standard deviation.

    As in figs 2 and 3 of seed paper 001: each shade is half a standard deviation of a
    new observation (noise included), up to plus and minus two.

    Attributes
    ----------
    x, mean, std : array of float, shape (rows,)
        Sorted by x.

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

    @classmethod
    def from_predictive(
        cls,
        predictive: RegressionPredictive,
        x: ArrayLike,
        *,
        scale: float = 1.0,
        offset: ArrayLike = 0.0,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Take what is drawn from a predictive with one output, and draw it.

        Parameters
        ----------
        predictive : RegressionPredictive
            One output per row.
        x : array, shape (rows,)
            Where the rows stand on the axis.
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
        regression_of(predictive)
        place = as_array("x", x).reshape(-1)
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

    def _draw(self, ax: Axes, label: str | None, line: dict[str, Any]) -> None:
        for number, width in enumerate(reversed(HALF_SDS)):
            low, high = self.mean - width * self.std, self.mean + width * self.std
            name = "±2 sd, a shade per half sd" if number == 0 else None
            ax.fill_between(self.x, low, high, label=name, **shade(line, 0.15))
        name = "predictive mean" if label is None else label
        ax.plot(self.x, self.mean, label=name, **line)


@final
@dataclass(eq=False)
class SoftmaxScatterDisplay(Display):
    """Every draw's logits and probabilities of a few classes, row by row.

    As in fig. 4 of seed paper 001: rows side by side, one point per draw and class.

    Attributes
    ----------
    classes : tuple of int
        The classes that are shown.
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
    logits: Array
    probs: Array

    @classmethod
    def from_predictive(
        cls,
        predictive: ClassificationPredictive,
        *,
        classes: Sequence[int] | None = None,
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
        ax = self._open(ax)
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
            ax.scatter(x, y, color=color, label=f"class {name}", **style)
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
