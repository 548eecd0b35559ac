"""Stages of a cascade: models that give a predictive, and a person at the end."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from caveat.decisions.rows import n_rows, take
from caveat.decisions.scores import Score, score_of
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.evaluation.scores import default_score
from caveat.predictive import Predictive

Array = NDArray[np.float64]
_WARM_UP = 32  # rows run before the clock starts


@final
@dataclass(frozen=True)
class Stage:
    """A model of a cascade, what it costs, and how its doubt is measured.

    Attributes
    ----------
    model : object with predictive(X), or callable
        From rows to a ``Predictive``: an estimator, or a function such as
        ``lambda x: mc.classify(x, n_draws=20)``.
    cost : float, optional
        Of one row, in any unit; if it is left out the seconds per row are measured.
    score : str or callable, optional
        How unsure the model is of a row, as for :func:`caveat.decisions.score_of`; by
        default one minus the largest probability, or the standard deviation.
    name : str, optional
        In reports.
    """

    model: Any
    cost: float | None = None
    score: Score | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.cost is not None:
            not_negative("cost", self.cost)
        if not callable(getattr(self.model, "predictive", self.model)):
            raise InputTypeError(
                f"A stage must have a method predictive(X) or be a function that "
                f"returns a Predictive. Got {type(self.model).__name__}."
            )

    def __call__(self, X: Any) -> Predictive:
        """The predictive of these rows, checked."""
        ask: Callable[[Any], Any] = getattr(self.model, "predictive", self.model)
        found, expected = ask(X), n_rows("X", X)
        if not isinstance(found, Predictive):
            raise InputTypeError(
                f"{self.title} must return a caveat Predictive. Got "
                f"{type(found).__name__}; wrap logits of draws by "
                f"CategoricalPredictive.from_logits, outputs by "
                f"GaussianPredictive.from_draws."
            )
        if len(found) != expected:
            raise ShapeError(
                f"{self.title} must return one row for each it is given, {expected}. "
                f"Got {len(found)}."
            )
        return found

    def doubt(self, predictive: Predictive) -> Array:
        """How unsure it is of each row."""
        score = default_score(predictive) if self.score is None else self.score
        return score_of(predictive, score)

    def timed(self, X: Any) -> tuple[Predictive, float]:
        """The predictive of these rows, and the seconds each took.

        A few rows are run before, so that what happens once is not counted.
        """
        few = np.arange(min(_WARM_UP, n_rows("X", X)))
        self(take(X, few))
        start = time.perf_counter()
        found = self(X)
        return found, (time.perf_counter() - start) / len(found)

    @property
    def title(self) -> str:
        """Its name, or that of the model."""
        own = getattr(self.model, "__name__", type(self.model).__name__)
        return self.name or str(own)


@final
@dataclass(frozen=True)
class Person:
    """The last stage: someone who answers whatever no model was sure of.

    Attributes
    ----------
    cost : float
        Of one row, in the unit of the other stages (seconds, if theirs are measured).
    risk : float, default 0
        The mean loss of their answers: for labels, one minus their accuracy.
    name : str, default "person"
        In reports.
    """

    cost: float
    risk: float = 0.0
    name: str = "person"

    def __post_init__(self) -> None:
        not_negative("cost", self.cost)
        not_negative("risk", self.risk)

    @property
    def title(self) -> str:
        """What reports say."""
        return self.name


def not_negative(name: str, value: Any) -> float:
    """A finite number of at least 0: a cost, or a mean loss."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(f"{name} must be a number of at least 0. Got {value!r}.")
    number = float(value)
    if not 0 <= number < math.inf:
        raise ParameterError(f"{name} must be finite and not negative. Got {value}.")
    return number
