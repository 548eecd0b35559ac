"""Cascade: each stage runs only on what the one before was unsure of."""

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np

from caveat.decisions.cascade.answers import CascadeAnswer, StageAnswer
from caveat.decisions.cascade.report import CascadeReport, report_on
from caveat.decisions.cascade.search import Frontier, Thresholds, surface
from caveat.decisions.cascade.stages import Person, Stage
from caveat.decisions.cascade.trial import Loss, default_loss, same_kind, try_all
from caveat.decisions.rows import Rows, n_rows, take
from caveat.errors import InputTypeError, ParameterError, ShapeError

_NO_THRESHOLDS = """This cascade has no thresholds yet. Choose them on held-out rows,
cascade = cascade.calibrate(X, y, budget=...) or risk=..., or pass thresholds=."""


@final
class Cascade:
    """Models from fast to slow, and perhaps a person, each for what is left.

    A row is answered by the first stage whose doubt is at most its threshold; the last
    stage answers the rest. It costs what all stages that ran on it cost.

    Parameters
    ----------
    stages : sequence
        Two or more, from cheap to dear: estimators with ``predictive(X)``, functions
        that return a ``Predictive``, :class:`Stage` for more to say of one, and
        :class:`Person` at the end. Models must give the same answer to a row whichever
        rows come with it, as those with shared masks do.
    loss : callable, optional
        From a predictive and y to the loss of each row; by default 1 for a wrong
        label, or the squared error.
    thresholds : sequence of float, optional
        One for each stage but the last; :meth:`calibrate` chooses them.

    Attributes
    ----------
    stages : tuple of Stage, and perhaps a Person
    thresholds : tuple of float, or None
    costs : tuple of float, or None
        Per row, as given or measured by :meth:`calibrate`.
    calibration : CascadeReport or None
        What the thresholds do on the rows they were chosen on.

    Examples
    --------
    >>> import torch
    >>> from caveat.decisions import Cascade, Person, Stage
    >>> from caveat.predictive import CategoricalPredictive
    >>> def linear(*weights):
    ...     W = torch.tensor([[0.0, 0.0], weights]).T
    ...     return lambda x: CategoricalPredictive.from_logits((x @ W)[None])
    >>> side = torch.linspace(-1, 1, 10)
    >>> x = torch.cartesian_prod(side, side)
    >>> y = (x[:, 0] + 0.5 * x[:, 1] > 0).long()
    >>> fast, slow = Stage(linear(2.0, 0.0), cost=1), Stage(linear(8.0, 4.0), cost=9)
    >>> cascade = Cascade([fast, slow]).calibrate(x, y, budget=5)
    >>> cascade.calibration.accuracy, round(cascade.calibration.cost, 2)
    (1.0, 4.6)
    >>> cascade.run(x).n_run
    (100, 40)
    """

    def __init__(
        self,
        stages: Sequence[Any],
        *,
        loss: Loss = default_loss,
        thresholds: Sequence[float] | None = None,
    ) -> None:
        self.stages = _checked_stages(stages)
        self.thresholds = _checked_thresholds(thresholds, len(self.stages))
        self.costs: tuple[float, ...] | None = None
        self.calibration: CascadeReport | None = None
        self._loss = loss

    def calibrate(
        self, X: Any, y: Any, *, budget: float | None = None, risk: float | None = None
    ) -> Self:
        """Choose all thresholds together on held-out rows, for a budget or a risk.

        Every combination on a grid of quantiles of the doubts is looked at, so on
        these rows the choice is the best on the grid and keeps the limit. On new rows
        from the same source cost and risk are what ``report`` estimates on rows that
        were not used here; as the best of many, the risk seen here is a little too
        good.

        Parameters
        ----------
        X, y
            Rows that no stage was trained on, and their outcomes (class numbers, for
            labels). Every stage runs on all of them.
        budget : float, optional
            The most a row may cost on average; the risk is then made smallest.
        risk : float, optional
            The highest mean loss (error rate, for labels); the cost is then made
            smallest.

        Returns
        -------
        Cascade
            A new one, with ``thresholds``, ``costs`` and ``calibration``.
        """
        if (budget is None) == (risk is None):
            raise ParameterError(
                f"Pass either budget= or risk=. Got budget={budget} and risk={risk}."
            )
        trial, of_labels = try_all(self.stages, X, y, loss=self._loss, costs=None)
        found = surface(trial)
        if budget is not None:
            thresholds = found.best(found.loss, found.cost, budget, "budget")
        else:
            assert risk is not None
            thresholds = found.best(found.cost, found.loss, risk, "risk")
        chosen = type(self)(self.stages, loss=self._loss, thresholds=thresholds)
        chosen.costs = tuple(trial.cost.tolist())
        chosen.calibration = report_on(
            trial, thresholds, self.stages, of_labels=self._counts_errors(of_labels)
        )
        return chosen

    def frontier(self, X: Any, y: Any) -> Frontier:
        """The smallest risk for each cost, on held-out rows.

        Parameters
        ----------
        X, y
            As for :meth:`calibrate`.

        Returns
        -------
        Frontier
            Costs, risks and the thresholds that have them.
        """
        trial, _ = try_all(self.stages, X, y, loss=self._loss, costs=self.costs)
        return surface(trial).frontier()

    def run(self, X: Any) -> CascadeAnswer:
        """Answer rows, each stage only on what is left.

        Parameters
        ----------
        X : array, Tensor, sparse matrix or data frame
            Of at least one row.

        Returns
        -------
        CascadeAnswer
        """
        limits, total = self._limits(), n_rows("X", X)
        if total == 0:
            raise ShapeError("X must have at least one row. Got none.")
        stage, left = np.zeros(total, dtype=np.int64), np.arange(total)
        parts, n_run = [], [0] * len(self.stages)
        for k, model in enumerate(self.stages):
            n_run[k], stage[left] = len(left), k
            if isinstance(model, Person) or not len(left):
                break
            part, left = self._asked(model, X, left, limits[k])
            parts.append(part)
        same_kind(self.stages, [part.predictive for part in parts])
        return CascadeAnswer(stage, tuple(parts), tuple(n_run), left)

    def report(self, X: Any, y: Any) -> CascadeReport:
        """Share, accuracy and cost by stage, on rows whose outcomes are known.

        Parameters
        ----------
        X, y
            Rows and outcomes, best those that neither training nor calibration has
            seen. To say what always using the slow model would do, every stage runs on
            all of them.

        Returns
        -------
        CascadeReport
            Prints as a table.
        """
        self._limits()
        assert self.thresholds is not None
        trial, of_labels = try_all(self.stages, X, y, loss=self._loss, costs=self.costs)
        labels = self._counts_errors(of_labels)
        return report_on(trial, self.thresholds, self.stages, of_labels=labels)

    def __repr__(self) -> str:
        names = ", ".join(stage.title for stage in self.stages)
        return f"Cascade([{names}], thresholds={self.thresholds})"

    # ------------------------------------------------------------ private

    def _asked(
        self, model: Stage, X: Any, left: Rows, limit: float
    ) -> tuple[StageAnswer, Rows]:
        """The answers of a stage, and the rows it passes on."""
        predictive = model(take(X, left))
        sure = np.ones(len(left), bool)
        if limit < np.inf:
            sure = model.doubt(predictive) <= limit
        return StageAnswer(left[sure], predictive[sure]), left[~sure]

    def _limits(self) -> Thresholds:
        if self.thresholds is None:
            raise ParameterError(_NO_THRESHOLDS)
        return (*self.thresholds, np.inf)

    def _counts_errors(self, of_labels: bool) -> bool:
        return self._loss is default_loss and of_labels


def _checked_stages(stages: Sequence[Any]) -> tuple[Stage | Person, ...]:
    found = tuple(s if isinstance(s, Stage | Person) else Stage(s) for s in stages)
    if len(found) < 2 or any(isinstance(s, Person) for s in found[:-1]):
        raise ParameterError(
            f"A cascade must have two or more stages, the first a model, and a Person "
            f"only at the end. Got {[s.title for s in found]}."
        )
    given = [s.cost for s in found if isinstance(s, Stage)]
    if len({cost is None for cost in given}) > 1:
        raise ParameterError(
            f"Give the cost of all models or of none: measured costs are seconds per "
            f"row. Got {given}."
        )
    return found


def _checked_thresholds(
    thresholds: Sequence[float] | None, n_stages: int
) -> Thresholds | None:
    if thresholds is None:
        return None
    values = tuple(float(value) for value in thresholds)
    if len(values) != n_stages - 1:
        raise ShapeError(
            f"thresholds must hold one number for each stage but the last, "
            f"{n_stages - 1}. Got {len(values)}."
        )
    if any(np.isnan(values)):
        raise InputTypeError(f"thresholds must not be NaN. Got {values}.")
    return values
