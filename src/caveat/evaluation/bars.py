"""Bars of class probabilities, row by row: for predictives with draws or without."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray

from caveat import _validation as check
from caveat.errors import DrawsNotKeptError, NoAnswerError, ParameterError, ShapeError
from caveat.evaluation.axes import COLOURS, HATCHES, Display
from caveat.predictive import ClassificationPredictive

Array = NDArray[np.float64]
_MOST_ROWS = 24


@dataclass(eq=False)
class ClassBarsDisplay(Display):
    """The probability of each class as a bar, rows side by side.

    Where draws are kept, a thin line spans the middle of them: where the probability
    lies over the draws, at ``level``.

    Attributes
    ----------
    classes : tuple of int
        The classes that are shown.
    names : list of str
        What they are called.
    probs : array of float, shape (rows, classes shown)
    ends : array of float, shape (2, rows, classes shown), or None
        Lower and upper end of the lines.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import CategoricalPredictive
    >>> point = CategoricalPredictive.point(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    >>> display = point.plot(names=["calm", "storm"])
    >>> display.names, display.ends is None, len(display.ax_.patches)
    (['calm', 'storm'], True, 4)
    """

    classes: tuple[int, ...]
    names: list[str]
    probs: Array
    ends: Array | None

    @classmethod
    def from_predictive(
        cls,
        predictive: ClassificationPredictive,
        *,
        classes: Sequence[int] | None = None,
        names: Sequence[Any] | None = None,
        level: float = 0.9,
        row: int | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Take the probabilities of a classification, and draw them.

        Parameters
        ----------
        predictive : ClassificationPredictive
            Of at most 24 rows; take some of them otherwise, ``predictive[:10]``.
        classes : sequence of int, optional
            Which to show; by default up to seven, the most probable of any row.
        names : sequence, optional
            Of all classes; by default their numbers.
        level : float, default 0.9
            Of the lines.
        row : int, optional
            Of predictives with several labels a row (tokens): which row. Its labels
            then stand side by side.
        ax : Axes, optional
            Where to draw; a new figure by default.
        **style
            Passed to ``Axes.bar``.

        Returns
        -------
        ClassBarsDisplay
            Drawn.
        """
        probs = _table(predictive.probs, row, 0)
        n_classes = probs.shape[-1]
        if len(probs) > _MOST_ROWS:
            raise ParameterError(
                f"Bars are for at most {_MOST_ROWS} rows. Got {len(probs)}; plot some "
                f"of them, as predictive[:10]."
            )
        if classes is None:
            peaks = probs.amax(0).argsort(descending=True)[: len(COLOURS)]
            classes = sorted(peaks.tolist())
        chosen = list(classes)
        if not chosen or not all(0 <= k < n_classes for k in chosen):
            raise ParameterError(
                f"classes must be numbers below {n_classes}. Got {chosen!r}."
            )
        named = check.class_names(
            range(n_classes) if names is None else names, n_classes
        )
        ends = _ends(predictive, row, check.unit_interval("level", level))
        return cls(
            tuple(chosen),
            [str(named[k]) for k in chosen],
            probs[:, chosen].double().numpy(force=True),
            None if ends is None else ends[..., chosen].numpy(force=True),
        ).plot(ax, **style)

    def plot(self, ax: Axes | None = None, **style: Any) -> Self:
        """Draw a bar per row and class.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure by default.
        **style
            Passed to ``Axes.bar``.

        Returns
        -------
        ClassBarsDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        ax = self._open(ax)
        n_rows, n_classes = self.probs.shape
        width = 0.8 / n_classes
        for k, name in enumerate(self.names):
            x = np.arange(n_rows) + (k - (n_classes - 1) / 2) * width
            number = k % len(COLOURS)
            own = {
                "color": COLOURS[number],
                "hatch": HATCHES[number],
                "edgecolor": "white",
                "linewidth": 0.4,
                "label": name,
            }
            ax.bar(x, self.probs[:, k], 0.92 * width, **{**own, **style})
            if self.ends is not None:
                ax.vlines(x, *self.ends[..., k], color="black", linewidth=1.2)
        ax.set(xlabel="row", ylabel="probability", ylim=(0, 1))
        ax.set_xticks(range(n_rows))
        ax.legend(
            title="class",
            ncols=min(n_classes, 7),
            fontsize="small",
            frameon=False,
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),  # above, where no bar can be
        )
        return self


def _ends(
    predictive: ClassificationPredictive, row: int | None, level: float
) -> torch.Tensor | None:
    """Quantiles of the probabilities over the draws, if there are draws."""
    try:
        draws = predictive.draws
    except (DrawsNotKeptError, NoAnswerError):
        return None
    if len(draws) < 2:
        return None
    probs = _table(draws.double().softmax(-1), row, 1)
    ends = [(1 - level) / 2, (1 + level) / 2]
    sides = torch.tensor(ends, dtype=probs.dtype, device=probs.device)
    return probs.quantile(sides, dim=0)


def _table(values: torch.Tensor, row: int | None, axis: int) -> torch.Tensor:
    """Rows and classes on the last two axes."""
    if row is not None:
        values = values.select(axis, row)
    if values.ndim != axis + 2:
        raise ShapeError(
            f"Bars need one label per row, or row= of labels in one line. Got "
            f"probabilities of shape {tuple(values.shape[axis:])}."
        )
    return values
