"""The learning curve: how good the model was with how many labels."""

from dataclasses import dataclass
from typing import final

from caveat._validation import same_shape
from caveat.errors import ParameterError


@final
@dataclass(frozen=True)
class LearningCurve:
    """How good the model was after each fit.

    Attributes
    ----------
    n_labels : tuple of int
        Labels the model was fitted to, growing.
    score : tuple of float
        What ``evaluate`` said then, higher is better.

    Examples
    --------
    >>> curve = LearningCurve((20, 30, 40), (0.6, 0.9, 0.8))
    >>> curve.labels_needed(0.85), curve.labels_needed(0.95)
    (30, None)
    """

    n_labels: tuple[int, ...] = ()
    score: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        same_shape("score", (len(self.score),), (len(self.n_labels),))
        if list(self.n_labels) != sorted(set(self.n_labels)):
            raise ParameterError(f"n_labels must grow. Got {self.n_labels}.")

    def __len__(self) -> int:
        return len(self.n_labels)

    def with_point(self, n_labels: int, score: float) -> "LearningCurve":
        """The curve with one more fit."""
        return LearningCurve((*self.n_labels, n_labels), (*self.score, score))

    def labels_needed(self, target: float) -> int | None:
        """The fewest labels with which the score was at least ``target``.

        Parameters
        ----------
        target : float
            In the units of the score.

        Returns
        -------
        int or None
            None if the curve never got there.
        """
        reached = zip(self.n_labels, self.score, strict=True)
        return next((n for n, score in reached if score >= target), None)
