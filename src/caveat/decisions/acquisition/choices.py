"""From a predictive to rows: what every acquisition does, and the two plain ones."""

from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from caveat import _validation as check
from caveat.decisions.scores import Score, score_of
from caveat.errors import InputTypeError, ParameterError
from caveat.predictive import Predictive

Rows = NDArray[np.int64]


@runtime_checkable
class Acquisition(Protocol):
    """Chooses rows that are worth a label."""

    def choose(self, predictive: Predictive, n_rows: int, *, seed: int = 0) -> Rows:
        """Numbers of ``n_rows`` different rows, the first chosen first."""
        ...


@final
@dataclass(frozen=True)
class TopScore:
    """The rows with the highest scores, each judged by itself.

    Cheap, but near duplicates have the same score and come together; see
    :class:`BatchBALD` and :class:`Diverse` for batches.

    Attributes
    ----------
    score : str or callable
        Such as ``bald``, ``predictive_variance``, or a name that
        :func:`caveat.decisions.score_of` knows. Of equal rows the first is taken.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import GaussianPredictive
    >>> draws = torch.tensor([[0.0, 0.0, 1.0], [0.0, 5.0, 2.0]])  # 2 draws, 3 rows
    >>> predictive = GaussianPredictive.from_draws(draws, precision=1.0)
    >>> TopScore("std").choose(predictive, 2)
    array([1, 2])
    """

    score: Score

    def choose(self, predictive: Predictive, n_rows: int, *, seed: int = 0) -> Rows:
        """Rows of the highest scores, highest first; nothing in it is random."""
        number = checked_number(n_rows, predictive)
        scores = score_of(predictive, self.score)
        return np.argsort(-scores, kind="stable")[:number]


@final
@dataclass(frozen=True)
class RandomChoice:
    """Rows at random, all equally likely: what every acquisition must beat."""

    def choose(self, predictive: Predictive, n_rows: int, *, seed: int = 0) -> Rows:
        """Different rows at random; the same for the same seed."""
        number = checked_number(n_rows, predictive)
        generator = np.random.default_rng(seed)
        return generator.choice(len(predictive), number, replace=False)


def as_acquisition(value: Any) -> Acquisition:
    """An acquisition as it is; a score, by name or as a function, as a TopScore.

    Parameters
    ----------
    value : Acquisition, str or callable
        What :class:`ActiveLearner` takes as ``acquisition``.

    Returns
    -------
    Acquisition
        Something with the method ``choose``.
    """
    if isinstance(value, Acquisition):
        return value
    if isinstance(value, str) or callable(value):
        return TopScore(value)
    raise InputTypeError(
        f"acquisition must have a method choose, or be a score such as "
        f"acquisition.bald. Got {type(value).__name__}."
    )


def checked_number(n_rows: Any, predictive: Any) -> int:
    """How many rows to choose: at least one and at most all."""
    number = check.positive_int("n_rows", n_rows)
    if not isinstance(predictive, Predictive):
        raise InputTypeError(
            f"predictive must be a caveat Predictive. Got {type(predictive).__name__}."
        )
    if number > len(predictive):
        raise ParameterError(
            f"n_rows must be at most the number of candidates, {len(predictive)}. "
            f"Got {number}."
        )
    return number
