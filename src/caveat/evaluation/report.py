"""Everything worth knowing about a predictive, measured at once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, final

from rich.table import Table
from torch import Tensor

from caveat.errors import ParameterError
from caveat.evaluation.estimates import Estimate
from caveat.evaluation.intervals import coverage
from caveat.evaluation.metrics import (
    accuracy,
    brier,
    log_likelihood,
    rmse,
    sharpness,
)
from caveat.evaluation.ood import error_auroc
from caveat.evaluation.ranked import crps
from caveat.evaluation.reliability import ReliabilityCurve
from caveat.evaluation.scores import Score, default_score
from caveat.evaluation.selective import aurc
from caveat.evaluation.targets import (
    named_labels,
    observed_labels,
    observed_values,
    regression_of,
)
from caveat.predictive import (
    ClassificationPredictive,
    Predictive,
    RegressionPredictive,
)

_COLUMNS = ("metric", "value", "standard error", "best")
_LEVELS = (0.5, 0.9, 0.95)
_NO_NOISE = (
    "The predictive has no observation noise: densities and intervals are those of the "
    "output of the model. Give it one by predictive.with_precision(tau)."
)


class Metric(NamedTuple):
    """A metric of a report.

    Attributes
    ----------
    estimate : Estimate
        What was found.
    best : str
        What would be best, in words.
    """

    estimate: Estimate
    best: str


@final
@dataclass(frozen=True, eq=False)
class Evaluation:
    """All metrics of a predictive, with their standard errors.

    Print it for a table, ask it for a metric by name, or take ``to_markdown()``.

    Attributes
    ----------
    title : str
        What was evaluated.
    metrics : mapping of str to Metric
        In the order of the table.
    notes : tuple of str
        What the table cannot say: metrics left out, and how to read others.
    """

    title: str
    metrics: Mapping[str, Metric]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Estimate:
        """The estimate of a metric by its name in the table."""
        if name not in self.metrics:
            raise ParameterError(
                f"There is no metric {name!r} here. There are "
                f"{', '.join(map(repr, self.metrics))}."
            )
        return self.metrics[name].estimate

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Lines of the table as text: metric, value, standard error, best."""
        lines = []
        for name, (estimate, best) in self.metrics.items():
            value, error = str(estimate).split(" ± ")
            lines.append((name, value, error, best))
        return lines

    def to_markdown(self) -> str:
        """The table, and the notes below it, in Markdown."""
        lines = ["| " + " | ".join(_COLUMNS) + " |", "|---|---:|---:|---|"]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows()]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)])

    def __rich__(self) -> Table:
        table = Table(title=self.title, caption="\n".join(self.notes) or None)
        for name in _COLUMNS:
            is_number = name in ("value", "standard error")
            table.add_column(name, justify="right" if is_number else "left")
        for row in self.rows():
            table.add_row(*row)
        return table

    def _repr_markdown_(self) -> str:
        return f"**{self.title}**\n\n{self.to_markdown()}"

    def __str__(self) -> str:
        lines = [_COLUMNS, *self.rows()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            f"{name:<{widths[0]}}  {value:>{widths[1]}}  {error:>{widths[2]}}  {best}"
            for name, value, error, best in lines
        ]
        return "\n".join([self.title, *text, *self.notes])

    __repr__ = __str__


def evaluate(
    predictive: Predictive,
    y: Any,
    *,
    score: Score | None = None,
    classes: Sequence[Any] | None = None,
) -> Evaluation:
    """Measure a predictive on rows whose outcome is known.

    Parameters
    ----------
    predictive : Predictive
        Of rows that trained nothing, of any kind. One of draws needs its draws.
    y : array or Tensor
        Observations of the shape of the mean, or class numbers; names with ``classes``.
    score : str or callable, optional
        By which rows are ranked for ``AURC``; as for
        :func:`caveat.evaluation.score_of`.
    classes : sequence, optional
        Names of the classes, in the order of their numbers, if ``y`` holds names.

    Returns
    -------
    Evaluation
        For regression RMSE, log-likelihood, CRPS, coverage of three levels, sharpness
        and, for one output, AURC of the absolute error; for classification accuracy,
        log-likelihood, Brier score, ECE, sharpness and, for one label per row, AURC and
        the AUROC of errors. Errors are over rows: they do not know how much another
        training would have changed.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import CategoricalPredictive
    >>> logits = torch.randn(20, 50, 3, generator=torch.Generator().manual_seed(0))
    >>> predictive = CategoricalPredictive.from_logits(logits)
    >>> found = evaluate(predictive, predictive.label)
    >>> found["accuracy"].value
    1.0
    >>> print(found.to_markdown().splitlines()[2])
    | accuracy | 1.000 | 0.000 | high |
    """
    y = named_labels(predictive, y, classes)
    chosen = default_score(predictive) if score is None else score
    if isinstance(predictive, ClassificationPredictive):
        metrics, notes = _classification(predictive, y, chosen)
    else:
        metrics, notes = _regression(regression_of(predictive), y, chosen)
    title = f"{type(predictive).__name__}: {len(predictive)} rows"
    return Evaluation(title, MappingProxyType(metrics), tuple(notes))


def _classification(
    predictive: ClassificationPredictive, y: Any, score: Score
) -> tuple[dict[str, Metric], list[str]]:
    labels = observed_labels(predictive, y)
    curve = ReliabilityCurve.from_predictive(predictive, labels)
    metrics = {
        "accuracy": Metric(accuracy(predictive, labels), "high"),
        "log-likelihood": Metric(log_likelihood(predictive, labels), "high"),
        "Brier score": Metric(brier(predictive, labels), "low"),
        "ECE": Metric(curve.ece, "low"),
        "mean entropy": Metric(sharpness(predictive), "low if calibrated"),
    }
    notes = [f"ECE of right probabilities on as many rows: {curve.ece_floor:.3f}"]
    if labels.ndim == 1:
        metrics["AURC"] = Metric(aurc(predictive, labels, score=score), "low")
        _try(
            metrics,
            notes,
            "AUROC of errors",
            "high",
            lambda: error_auroc(predictive, labels, score=score),
        )
    return metrics, notes


def _regression(
    predictive: RegressionPredictive, y: Any, score: Score
) -> tuple[dict[str, Metric], list[str]]:
    values, notes = observed_values(predictive, y), list[str]()
    metrics = {
        "RMSE": Metric(rmse(predictive, values), "low"),
        "log-likelihood": Metric(log_likelihood(predictive, values), "high"),
    }
    _add_intervals(metrics, notes, predictive, values)
    if not bool(predictive.noise_variance.any()):
        notes.append(_NO_NOISE)
    if values.numel() == len(values):
        found = aurc(predictive, values, score=score)
        metrics["AURC of the absolute error"] = Metric(found, "low")
    return metrics, notes


def _add_intervals(
    metrics: dict[str, Metric],
    notes: list[str],
    predictive: RegressionPredictive,
    values: Tensor,
) -> None:
    """CRPS, coverages and width; or notes where an interval cannot be had."""
    add = partial(_try, metrics, notes)
    add("CRPS", "low", lambda: crps(predictive, values))
    for level in _LEVELS:
        measure = partial(coverage, predictive, values, level=level)
        add(f"coverage of {level:.0%} intervals", str(level), measure)
    width = partial(sharpness, predictive, level=0.9)
    add("width of 90% intervals", "low if calibrated", width)


def _try(
    metrics: dict[str, Metric],
    notes: list[str],
    name: str,
    best: str,
    measure: Callable[[], Estimate],
) -> None:
    """Add a metric, or a note that says why it cannot be measured."""
    try:
        metrics[name] = Metric(measure(), best)
    except ParameterError as error:
        notes.append(f"{name} is left out. {error}")
