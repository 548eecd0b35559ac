"""What a cascade did on rows whose outcomes are known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from caveat.decisions.cascade.search import Thresholds, Trial
from caveat.decisions.cascade.stages import Person, Stage
from caveat.errors import ParameterError

_HEAD = ("stage", "threshold", "reached by", "answers", "{loss}", "cost/row", "spent")


@final
@dataclass(frozen=True)
class StageReport:
    """One stage: on what it ran, what it answered, how well and for how much.

    Attributes
    ----------
    name : str
    threshold : float
        Rows with a doubt of at most this are answered; inf for the last stage.
    reached, share : float
        Share of all rows that came to it, and that it answered.
    risk : float
        Mean loss of its answers, one minus their accuracy for labels; NaN if none.
    cost : float
        Of one row that comes to it.
    spent : float
        Of it per row of all: ``cost`` times ``reached``.
    """

    name: str
    threshold: float
    reached: float
    share: float
    risk: float
    cost: float
    spent: float

    @property
    def accuracy(self) -> float:
        """Share of its answers that are right, if they are labels."""
        return 1.0 - self.risk


@final
@dataclass(frozen=True)
class CascadeReport:
    """Share, accuracy and cost by stage, and the saving.

    Attributes
    ----------
    stages : tuple of StageReport
    n_rows : int
        On which all this was measured.
    risk, risk_error : float
        Mean loss of all answers, with its standard error; for labels the error rate.
    cost, cost_error : float
        Mean cost of a row, with its standard error.
    slow_name : str
        The last model before the person.
    slow_risk, slow_cost : float
        Of using that model always.
    person_cost : float
        The part of ``cost`` that goes to the person.
    of_labels : bool
        Whether the loss counts wrong labels.
    """

    stages: tuple[StageReport, ...]
    n_rows: int
    risk: float
    risk_error: float
    cost: float
    cost_error: float
    slow_name: str
    slow_risk: float
    slow_cost: float
    person_cost: float
    of_labels: bool

    @property
    def accuracy(self) -> float:
        """Share of all answers that are right."""
        if not self.of_labels:
            raise ParameterError("accuracy is for labels; a regression has a risk.")
        return 1.0 - self.risk

    @property
    def saving(self) -> float:
        """Part of the cost of always using the slow model that is saved (E126).

        Negative if the person costs more than the models save.
        """
        # E126: 1 - Σ_k c_k Pr(stage k is reached) / c_slow
        return 1.0 - self.cost / self.slow_cost

    @property
    def compute_saving(self) -> float:
        """The same without what the person costs."""
        return 1.0 - (self.cost - self.person_cost) / self.slow_cost

    def __str__(self) -> str:
        name = "accuracy" if self.of_labels else "risk"
        head = tuple(cell.format(loss=name) for cell in _HEAD)
        lines = [head, *(self._cells(stage) for stage in self.stages)]
        always = f"always {self.slow_name}"
        for title, risk, cost in (
            ("cascade", self.risk, self.cost),
            (always, self.slow_risk, self.slow_cost),
        ):
            lines.append((title, "", "", "", self._quality(risk), "", f"{cost:.4g}"))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(map(str.rjust, cells, widths)) for cells in lines]
        return "\n".join([*text, self._saved()])

    def _cells(self, stage: StageReport) -> tuple[str, ...]:
        return (
            stage.name,
            f"{stage.threshold:.3g}",
            f"{stage.reached:.1%}",
            f"{stage.share:.1%}",
            self._quality(stage.risk),
            f"{stage.cost:.4g}",
            f"{stage.spent:.4g}",
        )

    def _quality(self, risk: float) -> str:
        return f"{1 - risk:.2%}" if self.of_labels else f"{risk:.4g}"

    def _saved(self) -> str:
        parts = f"saving {self.saving:.1%}"
        if self.person_cost:
            parts += f" ({self.compute_saving:.1%} without what the person costs)"
        return f"{parts} against always {self.slow_name}, {self.n_rows} rows"


def report_on(
    trial: Trial,
    thresholds: Thresholds,
    stages: Sequence[Stage | Person],
    *,
    of_labels: bool,
) -> CascadeReport:
    """What a cascade with these thresholds does on the rows of a trial."""
    answered = trial.stage(thresholds)
    parts = tuple(
        _stage(k, stage.title, trial, answered, (*thresholds, np.inf)[k])
        for k, stage in enumerate(stages)
    )
    loss = trial.loss[answered, np.arange(trial.n_rows)]
    cost = np.cumsum(trial.cost)[answered]
    slow = max(k for k, stage in enumerate(stages) if isinstance(stage, Stage))
    root = max(trial.n_rows - 1, 1) ** 0.5
    return CascadeReport(
        parts,
        trial.n_rows,
        float(loss.mean()),
        float(loss.std() / root),
        float(cost.mean()),
        float(cost.std() / root),
        stages[slow].title,
        float(trial.loss[slow].mean()),
        float(trial.cost[slow]),
        sum(part.spent for part in parts[slow + 1 :]),
        of_labels,
    )


def _stage(
    k: int, name: str, trial: Trial, answered: np.ndarray, threshold: float
) -> StageReport:
    own = answered == k
    reached, cost = float((answered >= k).mean()), float(trial.cost[k])
    risk = float(trial.loss[k, own].mean()) if own.any() else float("nan")
    return StageReport(
        name, threshold, reached, float(own.mean()), risk, cost, cost * reached
    )
