"""Choosing rates, epochs and Adam's peak for one split, by its own validation rows.

Short trainings are looked at first. Each next length is three times as long and starts
at the drop rate that was best before, so that few of the long trainings are needed; the
longest is tried only if the one before it was better than the shorter ones. The two
best lengths compete in the end, as single networks or as ensembles.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from caveat.papers.table1.jobs import Job
from caveat.training import Choice, Memory, NetworkSpec, Task
from caveat.training.search import Folds, best_choice, validated

RATES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
INPUT_RATES = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
PEAKS = (0.001, 0.002, 0.005, 0.01, 0.02)
LONGEST = 900  # epochs, if these are
STEPS = (20_000, 150_000)  # from so many to so many
LENGTHS = 4
_FINALISTS = 2  # lengths that compete in the end


@dataclass(frozen=True)
class Climb:
    """Scores of one task; those known are not computed again.

    Parameters
    ----------
    task : Task
        Training rows of a split.
    folds : callable
        Of its rows.
    """

    task: Task
    folds: Folds
    store: Memory = field(default_factory=Memory)

    def score(self, spec: NetworkSpec) -> float:
        """The log-likelihood of validation rows, at its best scale."""
        return self.choice([spec]).score.log_likelihood

    def choice(self, specs: Sequence[NetworkSpec]) -> Choice:
        """The best of some."""
        scores = validated(
            [(self.task, spec) for spec in specs],
            folds=self.folds,
            store=self.store,
            n_threads=1,
        )
        return best_choice(self.task, dict(zip(specs, scores, strict=True)))

    def along(
        self, spec: NetworkSpec, name: str, values: Sequence[float]
    ) -> NetworkSpec:
        """From where a spec stands to a neighbouring value, while that is better.

        Parameters
        ----------
        spec : NetworkSpec
            Whose field of that name, or its schedule's, is one of ``values``.
        name : str
            Of the field.
        values : sequence of float
            In their order.

        Returns
        -------
        NetworkSpec
        """
        ladder = [spec.vary(**{name: value}) for value in values]
        start = place = ladder.index(spec)
        for step in (1, -1):
            while 0 <= place + step < len(ladder):
                if self.score(ladder[place + step]) <= self.score(ladder[place]):
                    break
                place += step
            if place != start:  # what lies on the other side was worse
                break
        return ladder[place]


def lengths(job: Job, n_train: int, batch_size: int) -> list[int]:
    """Epochs to try, the same rule for every set: each three times the one before.

    The longest are 900 epochs, but at least 20,000 steps and at most 150,000.
    """
    steps = max(1, n_train // batch_size)
    longest = int(np.clip(LONGEST, STEPS[0] // steps, STEPS[1] // steps))
    found = [round(longest / 3**k) for k in reversed(range(LENGTHS))]
    return [job.shortened(epochs) for epochs in found]


def chosen(
    climb: Climb, start: NetworkSpec, epochs: Sequence[int], n_members: int = 1
) -> Choice:
    """The spec of a split, with the scale of its precisions.

    Parameters
    ----------
    climb : Climb
        Of the split.
    start : NetworkSpec
        All that is not chosen here; its peak is one of ``PEAKS``.
    epochs : sequence of int
        The lengths, from the shortest.
    n_members : int
        Of the ensembles among which the length is chosen.

    Returns
    -------
    Choice
    """
    first, *others = dict.fromkeys(epochs)
    many = [start.vary(drop_rate=rate, epochs=first) for rate in RATES]
    found = [climb.choice(many).spec]
    for length in others[:-1]:
        found.append(climb.along(found[-1].vary(epochs=length), "drop_rate", RATES))
    place = max(range(len(found)), key=lambda k: climb.score(found[k]))
    best = climb.along(found[place], "learning_rate", PEAKS)
    found[place] = climb.along(best, "input_drop_rate", INPUT_RATES)
    if others and place == len(found) - 1:  # no longer training was worse so far
        longest = found[place].vary(epochs=others[-1])
        found.append(climb.along(longest, "drop_rate", RATES))
    last = sorted(found, key=climb.score, reverse=True)[:_FINALISTS]
    return climb.choice([replace(spec, n_members=n_members) for spec in last])
