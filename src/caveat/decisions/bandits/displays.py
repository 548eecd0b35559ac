"""Cumulative regret with its bands: ``from_curves`` takes it, ``plot`` draws it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from caveat.decisions.bandits.runs import RegretCurve
from caveat.errors import ParameterError

# Okabe and Ito's colours, which the colour-blind can tell apart
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", "-.", ":")


@dataclass(eq=False)
class RegretDisplay:
    """Mean cumulative regret of agents, with bands of two standard errors over seeds.

    Attributes
    ----------
    curves : tuple of RegretCurve
    ax_, figure_
        Where it was drawn; set by ``plot``.

    Examples
    --------
    >>> import numpy as np
    >>> from caveat.decisions.bandits import RegretCurve
    >>> curve = RegretCurve("uniform", np.cumsum(np.ones((3, 50)), 1))
    >>> display = RegretDisplay.from_curves([curve])
    >>> len(display.ax_.lines), len(display.ax_.collections)
    (1, 1)
    """

    curves: tuple[RegretCurve, ...]
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    @classmethod
    def from_curves(
        cls, curves: Sequence[RegretCurve], *, ax: Axes | None = None, **line: Any
    ) -> Self:
        """Take the curves of ``compare_agents``, and draw them.

        Parameters
        ----------
        curves : sequence of RegretCurve
            At least one.
        ax : Axes, optional
            Where to draw; a new figure by default.
        **line
            Passed to ``Axes.plot``.

        Returns
        -------
        RegretDisplay
            Drawn.
        """
        if not curves:
            raise ParameterError("curves must hold at least one RegretCurve. Got none.")
        return cls(tuple(curves)).plot(ax, **line)

    def plot(self, ax: Axes | None = None, **line: Any) -> Self:
        """Draw a line and, for two seeds or more, a band per agent.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure by default.
        **line
            Passed to ``Axes.plot``.

        Returns
        -------
        RegretDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        for k, curve in enumerate(self.curves):
            self._draw(curve, _style(k) | line)
        ax.set(xlabel="round", ylabel="cumulative regret")
        ax.legend(frameon=False)
        return self

    def _draw(self, curve: RegretCurve, style: dict[str, Any]) -> None:
        rounds, mean, error = curve.rounds, curve.mean, curve.standard_error
        self.ax_.plot(rounds, mean, label=curve.name, **style)
        if np.isfinite(error).all():
            low, high = mean - 2 * error, mean + 2 * error
            self.ax_.fill_between(
                rounds, low, high, color=style["color"], alpha=0.2, linewidth=0
            )


def _style(k: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[k % len(_COLOURS)],
        "linestyle": _DASHES[k % len(_DASHES)],
    }
