"""Cumulative regret with its bands: ``from_curves`` takes it, ``plot`` draws it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from matplotlib.axes import Axes

from caveat.decisions.bandits.runs import RegretCurve
from caveat.errors import ParameterError
from caveat.evaluation.axes import COLOURS, Display, shade

_DASHES = ("-", "--", "-.", ":")


@final
@dataclass(eq=False)
class RegretDisplay(Display):
    """Mean cumulative regret of agents, with bands of two standard errors over seeds.

    Attributes
    ----------
    curves : tuple of RegretCurve

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
        ax = self._open(ax)
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
            self.ax_.fill_between(rounds, low, high, **shade(style))


def _style(k: int) -> dict[str, Any]:
    return {
        "color": COLOURS[k % len(COLOURS)],
        "linestyle": _DASHES[k % len(_DASHES)],
    }
