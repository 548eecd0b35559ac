"""One run at a time in a folder, and no folder of somebody else."""

import multiprocessing
import os
import time

import pytest

from caveat.errors import ParameterError
from caveat.scoring.folder import results_in
from tests.scoring.data import quietly


def test_a_folder_with_results_is_refused(model, tables, plain):
    with pytest.raises(ParameterError, match="holds results of a run"):
        quietly(model, tables, plain)


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_with_other_things_is_refused(model, tables, tmp_path, resume):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ParameterError, match=r"must be new or empty.*thesis\.tex"):
        quietly(model, tables, tmp_path, resume=resume)
    (tmp_path / "file").touch()
    with pytest.raises(ParameterError, match="must be a folder"):
        quietly(model, tables, tmp_path / "file", resume=resume)


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_two_runs_refuse_each_other_and_a_killed_one_leaves_no_lock(tmp_path):
    ours, theirs = multiprocessing.Pipe()
    other = multiprocessing.get_context("fork").Process(
        target=hold, args=(tmp_path, theirs)
    )
    other.start()
    try:
        assert ours.poll(60.0) and ours.recv() == "held"
        with pytest.raises(ParameterError, match=f"process {other.pid} on "):
            with results_in(tmp_path, {}):
                pass
    finally:
        other.kill()
        other.join()
    with results_in(tmp_path, {}) as results:
        assert results.begin([], resume=False) == []
        with pytest.raises(ParameterError, match=f"process {os.getpid()} on "):
            with results_in(tmp_path, {}):
                pass


def hold(folder, pipe):
    with results_in(folder, {}):
        pipe.send("held")
        time.sleep(600.0)
