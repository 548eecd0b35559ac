"""Predictives as columns of a table."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from caveat import _validation as validation
from caveat.errors import DrawsNotKeptError, NoAnswerError, ParameterError
from caveat.frames.schema import BOOLEAN, INTEGER, Target
from caveat.predictive import ClassificationPredictive, Predictive

Answers = dict[str, NDArray[Any]]
_FIRST, _MOST = 100, 6400  # draws under a tolerance; twice as many each time


@final
@dataclass(frozen=True)
class Asking:
    """What is asked of a predictive.

    Attributes
    ----------
    level : float
        Of intervals.
    n_draws : int or None
        None: as many as the estimator takes.
    tolerance : float or None
        Of the Monte Carlo error of each row, in standard deviations.
    seed : int
    """

    level: float = 0.9
    n_draws: int | None = None
    tolerance: float | None = None
    seed: int = 0

    @classmethod
    def of(
        cls,
        *,
        level: float = 0.9,
        n_draws: int | None = None,
        tolerance: float | None = None,
        seed: int = 0,
    ) -> Self:
        """Checked."""
        validation.unit_interval("level", level)
        if n_draws is not None and tolerance is not None:
            raise ParameterError("Give n_draws or tolerance, not both.")
        if n_draws is not None:
            validation.several("n_draws", n_draws)
        if tolerance is not None:
            validation.positive("tolerance", tolerance)
        return cls(level, n_draws, tolerance, seed)

    @property
    def ladder(self) -> Iterator[int]:
        """Numbers of draws to try."""
        number = _FIRST
        while number <= _MOST:
            yield number
            number *= 2

    def is_enough(self, predictive: Predictive) -> NDArray[np.bool_]:
        """Which rows have an error below the tolerance, each by its own draws.

        Draws are taken as independent, so that no other row has a say; they are
        stratified, and the error is smaller than this.
        """
        try:
            draws = predictive.draws.double()
        except (DrawsNotKeptError, NoAnswerError):  # exact
            return np.ones(len(predictive), dtype=bool)
        if isinstance(predictive, ClassificationPredictive):
            draws = draws.softmax(-1)
            mean = draws.mean(0)
            scale = (mean * (1.0 - mean)).sqrt()
        else:
            scale = _std(predictive).double()
        error = draws.std(0) / len(draws) ** 0.5
        fine = error <= float(self.tolerance or 0.0) * scale
        return fine.reshape(len(fine), -1).all(1).numpy()


def answer_types(
    target: Target, classes: list[Any], *, has_sets: bool, defers: bool
) -> list[tuple[str, Any]]:
    """Names and types of the columns of answers."""
    y, number = target.name, pa.float64()
    if target.is_label:
        kinds = {BOOLEAN: pa.bool_(), INTEGER: pa.int64()}
        found = [(f"{y}_label", kinds.get(target.kind, pa.string()))]
        found += [(f"{y}_prob_{_shown(label)}", number) for label in classes]
        found += [(f"{y}_entropy", number), (f"{y}_mutual_information", number)]
    else:
        own = ("mean", "std", "lower", "upper", "epistemic")
        found = [(f"{y}_{name}", number) for name in own]
    if has_sets:
        found.append((f"{y}_set", pa.string()))
    return [*found, *([(f"{y}_deferred", pa.bool_())] if defers else [])]


def answer_columns(
    predictive: Any,
    target: Target,
    classes: list[Any],
    level: float,
    *,
    has_sets: bool,
) -> Answers:
    """The columns of answers, by name.

    Parameters
    ----------
    predictive : Predictive
        Of some rows.
    target : Target
        What is predicted.
    classes : list
        Labels, in order.
    level : float
        Of intervals.
    has_sets : bool
        Whether the predictive has conformal sets.

    Returns
    -------
    dict of str to array
    """
    y = target.name
    if not target.is_label:
        lower, upper = predictive.interval(level)
        epistemic = predictive.epistemic_variance.sqrt()
        own = (predictive.mean, _std(predictive), lower, upper, epistemic)
        names = ("mean", "std", "lower", "upper", "epistemic")
        return {f"{y}_{name}": _column(v) for name, v in zip(names, own, strict=True)}
    probs = predictive.probs.double().numpy()
    labels = np.array(classes, dtype=object)
    found = {f"{y}_label": labels[predictive.label.numpy()]}
    for number, label in enumerate(classes):
        found[f"{y}_prob_{_shown(label)}"] = probs[:, number]
    found[f"{y}_entropy"] = _column(predictive.entropy)
    found[f"{y}_mutual_information"] = _column(predictive.mutual_information)
    if has_sets:
        found[f"{y}_set"] = _sets(predictive.sets, classes)
    return found


def _sets(sets: Tensor, classes: list[Any]) -> NDArray[Any]:
    names = np.array([_shown(label) for label in classes], dtype=object)
    return np.array(["|".join(names[row]) for row in sets.numpy()], dtype=object)


def _shown(label: Any) -> str:
    """As CSV has it: true, not True."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def _std(predictive: Any) -> Tensor:
    found: Tensor = predictive.std
    return found


def _column(values: Tensor) -> NDArray[np.float64]:
    return values.to(torch.float64).reshape(-1).numpy()
