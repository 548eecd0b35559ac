"""What the networks of one kind did, epoch by epoch and on the test rows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caveat.papers.sequence.runs import ReaderRecord

Array = NDArray[np.float64]


class LearningCurves:
    """The records of one task, variant and rate, over all seeds."""

    def __init__(self, records: Sequence[ReaderRecord]) -> None:
        first = records[0]
        self.task, self.variant = first.task, first.variant
        self.drop_rate = first.drop_rate
        self._records = sorted(records, key=lambda r: (r.seed, r.epoch))
        self._n_seeds = len({r.seed for r in records})

    def validation(self, name: str) -> Array:
        """A column of the validation records, shape (seeds, epochs)."""
        return self.test(name, "validation").reshape(self._n_seeds, -1)

    def test(self, name: str, part: str = "test") -> Array:
        """A column of the test records, shape (seeds,)."""
        own = [getattr(r, name) for r in self._records if r.part == part]
        return np.array(own, np.float64)

    @property
    def best(self) -> Array:
        """Highest validation log-likelihood of each seed."""
        return np.asarray(self.validation("log_likelihood").max(1))

    @property
    def best_epoch(self) -> Array:
        """Where it is, from 1."""
        return np.asarray(self.validation("log_likelihood").argmax(1) + 1.0)

    @property
    def lost(self) -> Array:
        """How far each seed's validation log-likelihood fell from there to the end."""
        return np.asarray(self.best - self.validation("log_likelihood")[:, -1])


def all_curves(
    records: Sequence[ReaderRecord], task: str, variant: str
) -> list[LearningCurves]:
    """Those of a variant, a rate after the other."""
    own = [r for r in records if (r.task, r.variant) == (task, variant)]
    rates = sorted({r.drop_rate for r in own})
    return [LearningCurves([r for r in own if r.drop_rate == rate]) for rate in rates]


def chosen(records: Sequence[ReaderRecord], task: str, variant: str) -> LearningCurves:
    """Those at the rate with the best validation log-likelihood at any epoch."""
    return max(all_curves(records, task, variant), key=lambda c: float(c.best.mean()))


def gained(
    ours: LearningCurves, other: LearningCurves, part: str
) -> tuple[Array, Array]:
    """By how much our log-likelihood is higher and our error lower, for each seed."""
    likelihood = ours.test("log_likelihood", part) - other.test("log_likelihood", part)
    return likelihood, other.test("error", part) - ours.test("error", part)


def clear(gains: Array, margin: float) -> bool:
    """Whether the gain of every seed exceeds a margin."""
    return bool(np.all(gains > margin))
