"""Figures of what is gained by answering only where one is sure."""

from dataclasses import dataclass
from typing import Any, Self, final

from matplotlib.axes import Axes

from caveat.evaluation.axes import LineDisplay, diagonal, shade
from caveat.evaluation.scores import Score
from caveat.evaluation.selective import RiskCoverage
from caveat.predictive import Predictive

_FROM_0: dict[str, Any] = {"xlim": (0, 1), "ylim": (0, None)}


@dataclass(eq=False)
class SelectiveDisplay(LineDisplay):
    """What the figures of a :class:`RiskCoverage` share.

    Attributes
    ----------
    curve : RiskCoverage
        What is drawn.
    """

    curve: RiskCoverage

    @classmethod
    def from_predictive(
        cls,
        predictive: Predictive,
        y: Any,
        *,
        score: Score | None = None,
        loss: Any = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Rank rows by a score, and draw what is gained.

        Parameters
        ----------
        predictive, y, score, loss
            As for :meth:`RiskCoverage.from_predictive`.
        ax : Axes, optional
            Where to draw; a new figure by default.
        **style
            As for :meth:`plot`.

        Returns
        -------
        SelectiveDisplay
            Drawn.
        """
        curve = RiskCoverage.from_predictive(predictive, y, score=score, loss=loss)
        return cls(curve).plot(ax, **style)


@final
class RiskCoverageDisplay(SelectiveDisplay):
    """Mean loss of the accepted rows against the share that is accepted.

    The shade is two standard errors.

    Examples
    --------
    >>> curve = RiskCoverage.from_scores([0.1, 0.2, 0.3], [0, 0, 1])
    >>> RiskCoverageDisplay(curve).plot().ax_.get_ylabel()
    'mean loss of accepted rows'
    """

    def _draw(self, ax: Axes, label: str | None, line: dict[str, Any]) -> None:
        curve = self.curve
        several = curve.counts > 1  # one row has no standard error
        x, y = curve.coverage[several], curve.risk[several]
        twice = 2.0 * curve.risk_error[several]
        ax.fill_between(x, y - twice, y + twice, **shade(line))
        name = f"AURC {curve.aurc}" if label is None else label
        ax.plot(curve.coverage, curve.risk, label=name, **line)
        ax.set(xlabel="share accepted", ylabel="mean loss of accepted rows", **_FROM_0)


@final
class RetentionDisplay(SelectiveDisplay):
    """Loss per row if only the surest rows are kept, and the others answered rightly.

    The grey line is that of rows kept at random.

    Examples
    --------
    >>> curve = RiskCoverage.from_scores([0.1, 0.2, 0.3], [0, 0, 1])
    >>> len(RetentionDisplay(curve).plot().ax_.lines)  # pure chance and the curve
    2
    """

    def _draw(self, ax: Axes, label: str | None, line: dict[str, Any]) -> None:
        curve = self.curve
        diagonal(ax, curve.risk[-1])
        x, y = [0.0, *curve.coverage], [0.0, *curve.retained_error]
        name = f"area {curve.retention_area}" if label is None else label
        ax.plot(x, y, label=name, **line)
        ax.set(xlabel="share kept", ylabel="loss per row", **_FROM_0)
