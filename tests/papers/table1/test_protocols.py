"""Candidates of the protocols."""

from caveat.papers.table1.jobs import Job
from caveat.papers.table1.protocols import our_specs


def test_candidates_do_not_look_at_the_set():
    job = Job("best", ("1 layer",), "anything", (0,))
    small = our_specs(job, 300, (50,))
    assert len(set(small)) == len(small) == 16
    assert {s.schedule.epochs for s in small} == {853, 213}
    large = our_specs(job, 10_000, (50,))
    assert {s.schedule.epochs for s in large} == {150}
    assert {s.schedule.batch_size for s in (*small, *large)} == {32, 64}
