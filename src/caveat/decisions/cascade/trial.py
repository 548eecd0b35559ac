"""All stages on all rows whose outcomes are known: what thresholds are chosen on."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from caveat.decisions.cascade.search import Trial
from caveat.decisions.cascade.stages import Person, Stage
from caveat.decisions.rows import n_rows
from caveat.decisions.scores import checked_scores
from caveat.errors import InputTypeError, ShapeError
from caveat.evaluation.targets import observed_labels, observed_values
from caveat.predictive import ClassificationPredictive, Predictive

Array = NDArray[np.float64]
Loss = Callable[[Any, Any], Any]
AnyStage = Stage | Person


def default_loss(predictive: Any, y: Any) -> Tensor:
    """1 for a wrong label; the squared error, summed over outputs, for a regression.

    Parameters
    ----------
    predictive : Predictive
        Of a classification, or with a ``mean``.
    y : array or Tensor, shape (rows,) or that of the mean
        Class numbers, or values.

    Returns
    -------
    Tensor, shape (rows,)
    """
    if isinstance(predictive, ClassificationPredictive):
        labels = observed_labels(predictive, y)
        return (predictive.label != labels).double().cpu()
    mean, wanted = predictive.mean, observed_values(predictive, y)
    return (mean - wanted).double().square().reshape(len(mean), -1).sum(1)


def try_all(
    stages: Sequence[AnyStage],
    X: Any,
    y: Any,
    *,
    loss: Loss,
    costs: Sequence[float] | None,
) -> tuple[Trial, bool]:
    """Run every stage on every row.

    Parameters
    ----------
    stages : sequence of Stage, and perhaps a Person at the end
        Of the cascade.
    X, y
        Rows and their outcomes.
    loss : callable
        From a predictive and y to the loss of each row.
    costs : sequence of float, optional
        Of each stage; measured if they are neither here nor in the stages.

    Returns
    -------
    trial : Trial
    of_labels : bool
        Whether they are classifications.
    """
    rows = n_rows("X", X)
    if len(y) != rows or rows == 0:
        raise ShapeError(
            f"X and y must have the same number of rows, at least 1. Got {rows} and "
            f"{len(y)}."
        )
    found = [_asked(stage, X) for stage in stages if isinstance(stage, Stage)]
    predictives = [predictive for predictive, _ in found]
    same_kind(stages, predictives)
    losses = [checked_scores("The loss", loss(p, y), rows) for p in predictives]
    paid = [seconds for _, seconds in found]
    pairs = zip(stages, predictives, strict=False)
    doubts = [s.doubt(p) for s, p in pairs if isinstance(s, Stage)]
    last = stages[-1]
    if isinstance(last, Person):
        losses.append(np.full(rows, float(last.risk)))
        paid.append(last.cost)
    cost = np.array(paid if costs is None else costs, dtype=np.float64)
    doubt = np.array(doubts)[: len(stages) - 1]
    of_labels = isinstance(predictives[0], ClassificationPredictive)
    return Trial(doubt, np.array(losses), cost), of_labels


def same_kind(stages: Sequence[AnyStage], found: Sequence[Predictive]) -> None:
    """All stages must answer the same question."""
    first = found[0]
    for stage, other in zip(stages, found, strict=False):
        sides = [isinstance(p, ClassificationPredictive) for p in (first, other)]
        if sides[0] != sides[1]:
            raise InputTypeError(
                f"All stages must be regressions, or all classifications. "
                f"{stages[0].title} returns a {type(first).__name__}, {stage.title} a "
                f"{type(other).__name__}."
            )
        shapes = [_event(predictive) for predictive in (first, other)]
        if shapes[0] != shapes[1]:
            raise ShapeError(
                f"All stages must have the same classes or outputs. {stages[0].title} "
                f"has {shapes[0]}, {stage.title} {shapes[1]}."
            )


def _event(predictive: Any) -> tuple[int, ...]:
    of_labels = isinstance(predictive, ClassificationPredictive)
    return tuple((predictive.probs if of_labels else predictive.mean).shape[1:])


def _asked(stage: Stage, X: Any) -> tuple[Predictive, float]:
    """The predictive, and the cost that was given or measured."""
    if stage.cost is not None:
        return stage(X), stage.cost
    return stage.timed(X)
