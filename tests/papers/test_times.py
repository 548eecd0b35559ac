"""CPU time of runs: measured, added up, and said to be missing where it is."""

import pytest

from caveat.errors import StoppedError
from caveat.papers.records import read_records
from caveat.papers.runner import complete
from caveat.papers.times import NOT_MEASURED, RunTime, measured, shown, time_taken
from tests.papers.squares import Squares


def test_runs_add_up_to_the_time_of_all_jobs(tmp_path):
    own = Squares(tmp_path)
    assert time_taken(own) == NOT_MEASURED
    complete(own, n_workers=1)
    (run,) = read_records(tmp_path / "times.csv", RunTime)
    assert (run.name, run.n_jobs) == ("squares", 4)  # and their sum
    assert 0.0 <= run.seconds < 60.0 and time_taken(own) == shown(run.seconds)
    complete(own, n_workers=1)  # nothing was missing
    assert len(read_records(tmp_path / "times.csv", RunTime)) == 1


def test_what_was_stopped_counts_and_is_not_the_whole(tmp_path):
    own = Squares(tmp_path)
    with pytest.raises(KeyboardInterrupt), measured(own, ["a job"]):
        raise KeyboardInterrupt
    assert [r.n_jobs for r in read_records(tmp_path / "times.csv", RunTime)] == [1]
    assert time_taken(own) == NOT_MEASURED


def test_time_before_the_first_job_ends_counts_if_the_run_was_stopped(tmp_path):
    """Networks that are kept half done are gone on with, by a run that is shorter."""
    own = Squares(tmp_path)
    with pytest.raises(StoppedError), measured(own, []):
        raise StoppedError("stopped")
    (run,) = read_records(tmp_path / "times.csv", RunTime)
    assert run.n_jobs == 0 and time_taken(own) == NOT_MEASURED
    with pytest.raises(ValueError), measured(own, []):  # left nothing to go on with
        raise ValueError
    assert len(read_records(tmp_path / "times.csv", RunTime)) == 1


def test_smoke_tests_leave_no_time(tmp_path):
    complete(Squares(tmp_path, quick=True), n_workers=1)
    assert not (tmp_path / "times.csv").exists()
