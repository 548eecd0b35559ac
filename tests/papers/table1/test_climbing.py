"""The search of one split: few long trainings, and none that sees other rows."""

import numpy as np
import pytest

from caveat.evaluation.precision import BestScale
from caveat.papers.table1 import climbing
from caveat.papers.table1.climbing import (
    INPUT_RATES,
    PEAKS,
    RATES,
    Climb,
    chosen,
    lengths,
)
from caveat.papers.table1.jobs import Job
from caveat.training import NetworkSpec, Schedule, Task
from caveat.training.folds import last_fifth

START = NetworkSpec((50, 50), schedule=Schedule(learning_rate=5e-3))
EPOCHS = [33, 100, 300, 900]


@pytest.fixture
def asked(monkeypatch):
    """Specs that were trained, with scores by a formula: the best is known."""
    found = []

    def validated(pairs, *, store, folds, n_threads):
        scores = []
        for _, spec in pairs:
            if spec not in found:
                found.append(spec)
            scores.append(BestScale(1.0, score(spec)))
        return scores

    monkeypatch.setattr(climbing, "validated", validated)
    return found


def score(spec):
    """Longer trainings want higher rates; 300 epochs are best for one network."""
    epochs = spec.schedule.epochs
    best_rate = {33: 0.002, 100: 0.005, 300: 0.02, 900: 0.05}[epochs]
    best_length = 300 if spec.n_members == 1 else 900
    return (
        -abs(np.log(spec.drop_rate / best_rate))
        - abs(np.log(epochs / best_length))
        - abs(np.log(spec.schedule.learning_rate / 0.02))
        - 10 * abs(spec.input_drop_rate - 0.005)
    )


@pytest.fixture
def climb():
    x = np.arange(10.0)[:, None]
    return Climb(Task("split 0", x, x), last_fifth)


def test_the_best_of_all_is_found_with_few_long_trainings(asked, climb):
    choice = chosen(climb, START, EPOCHS)
    assert (choice.spec.drop_rate, choice.spec.schedule.epochs) == (0.02, 300)
    assert choice.spec.schedule.learning_rate == 0.02
    assert choice.spec.input_drop_rate == 0.005
    by_length = [sum(s.schedule.epochs == e for s in asked) for e in EPOCHS]
    assert by_length[0] == len(RATES) and by_length[-1] <= 4
    whole = len(RATES) * len(PEAKS) * len(INPUT_RATES) * len(EPOCHS)
    assert len(asked) < whole / 30


def test_the_length_is_chosen_among_ensembles(asked, climb):
    choice = chosen(climb, START, EPOCHS, n_members=5)
    ensembles = [s for s in asked if s.n_members == 5]
    assert [s.schedule.epochs for s in ensembles] == [300, 900]
    assert choice.spec == ensembles[1]


def test_the_longest_is_not_tried_once_longer_was_worse(asked, climb):
    """Of 900, 300 and 100 epochs, in this order, the last are not the best."""
    chosen(climb, START, EPOCHS[::-1])
    assert {s.schedule.epochs for s in asked} == {900, 300, 100}


@pytest.mark.parametrize(("at", "best"), [(0.001, 0.02), (0.2, 0.02), (0.02, 0.02)])
def test_a_ladder_is_climbed_from_either_end(asked, climb, at, best):
    spec = START.vary(drop_rate=at, epochs=300)
    assert climb.along(spec, "drop_rate", RATES).drop_rate == best


def test_lengths_are_thirds_and_small_sets_have_enough_steps():
    job = Job("best", ("1 layer",), "anything", (0,))
    assert lengths(job, 10_000, 64) == [33, 100, 300, 900]
    assert lengths(job, 40_000, 128)[-1] == 150_000 // 312
    small = lengths(job, 320, 32)
    assert small[-1] == 2000 and small[-2] == 667
    quick = Job("best", ("1 layer",), "anything", (0,), quick=True)
    assert max(lengths(quick, 10_000, 64)) == 45


def test_scores_are_those_of_a_search_on_the_same_rows():
    """Nothing but the rows of the task is there to be seen."""
    x = np.random.default_rng(0).normal(size=(40, 2))
    own = Climb(Task("a", x, x[:, :1]), last_fifth)
    spec = NetworkSpec((4,), schedule=Schedule(epochs=5))
    first = own.score(spec)
    assert np.isfinite(first) and own.score(spec) == first
    assert len(own.store.scores) == 1
