"""What is read from the records of networks."""

from dataclasses import replace

import numpy as np

from caveat.papers.sequence.curves import (
    LearningCurves,
    all_curves,
    chosen,
    clear,
    gained,
)
from caveat.papers.sequence.experiment import NATS
from tests.papers.sequence.samples import some_records


def test_curves_know_what_was_lost():
    own = LearningCurves(
        list(some_records("none", 0.0, [[0.1, 0.3, 0.2], [0.2, 0.3, -0.1]]))
    )
    np.testing.assert_allclose(own.lost, [0.1, 0.4])
    np.testing.assert_allclose(own.best_epoch, [2, 2])
    np.testing.assert_allclose(own.test("log_likelihood"), [0.2, -0.1])
    np.testing.assert_allclose(own.test("log_likelihood", "test_stopped"), 0.3)


def test_a_difference_is_clear_in_every_seed_or_not_at_all():
    assert clear(np.array([0.02, 0.011]), NATS)
    assert not clear(np.array([0.5, 0.009]), NATS)
    assert not clear(np.array([0.5, -0.5]), NATS)


def test_the_rate_is_chosen_on_validation_rows():
    records = [
        *some_records("sequence", 0.25, [[0.1, 0.2]]),
        *some_records("sequence", 0.5, [[0.3, 0.1]]),
    ]
    worse = [replace(r, log_likelihood=-9.0) if "test" in r.part else r
             for r in records]  # fmt: skip
    assert chosen(records, "ratings", "sequence").drop_rate == 0.5
    assert chosen(worse, "ratings", "sequence").drop_rate == 0.5
    rates = [c.drop_rate for c in all_curves(records, "ratings", "sequence")]
    assert rates == [0.25, 0.5]


def test_gains_are_paired_by_seed():
    ours = LearningCurves(list(some_records("sequence", 0.5, [[0.1, 0.3], [0.1, 0.4]])))
    other = LearningCurves(list(some_records("none", 0.0, [[0.1, 0.1], [0.6, 0.5]])))
    for gains in gained(ours, other, "test"):
        np.testing.assert_allclose(gains, [0.2, -0.1])
    for gains in gained(ours, other, "test_stopped"):
        np.testing.assert_allclose(gains, [0.2, -0.2])
