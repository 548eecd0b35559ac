"""Jobs on several processes."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from caveat.engines import WorkerLostError, spread


def threads(_):
    return max((library["num_threads"] for library in threadpool_info()), default=1)


def test_one_process_answers_in_the_order_of_the_jobs():
    found = list(spread(math.sqrt, [16.0, 4.0, 9.0], 1))
    assert found == [(16.0, 4.0), (4.0, 2.0), (9.0, 3.0)]


def test_a_job_has_one_thread():
    assert list(spread(threads, [0], 1)) == [(0, 1)]


def test_no_jobs_have_no_answers():
    assert list(spread(math.sqrt, [], 2)) == []


def test_several_processes_answer_as_they_end():
    """A job that sleeps comes last, wherever it stands."""
    jobs = [0.5, 0.0, 0.0]
    found = list(spread(time.sleep, jobs, 2))
    assert sorted(found) == [(0.0, None), (0.0, None), (0.5, None)]
    assert found[-1] == (0.5, None)


def test_errors_in_another_process_are_raised():
    with pytest.raises(ValueError, match="math domain"):
        list(spread(math.sqrt, [4.0, -1.0], 2))


@pytest.mark.skipif(os.name != "posix", reason="signals of a terminal")
def test_processes_do_not_hear_an_interruption():
    masks = dict(spread(hears_interruptions, [0, 1], 2))
    assert masks == {0: False, 1: False}
    assert hears_interruptions(0)  # this one still does


def hears_interruptions(_):
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_errors_that_cannot_be_sent_come_as_texts():
    with pytest.raises(RuntimeError, match="Awkward: no way"):
        list(spread(awkward, [0, 1], 2))


class Awkward(Exception):
    def __init__(self, one, two):
        super().__init__("no way")


def awkward(_):
    raise Awkward(1, 2)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_job_of_a_lost_process_is_given_to_another(tmp_path):
    """Once is an accident; three times is the job itself."""
    jobs = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    found = dict(spread(killed_once, jobs, 2))
    assert found == dict.fromkeys(jobs, 2)
    with pytest.raises(WorkerLostError, match="ended 3 times before it was done"):
        list(spread(killed, [1, 2], 2))


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_somebody_may_answer_for_a_lost_job():
    found = dict(spread(killed, [1, 0, 2], 2, on_lost=lambda job: -job))
    assert found == {1: -1, 0: 0, 2: -2}


def killed(job):
    if job:
        os.kill(os.getpid(), signal.SIGKILL)
    return job


def killed_once(path):
    tries = len(list(path.parent.glob(f"{path.name}-*"))) + 1
    path.with_name(f"{path.name}-{tries}").touch()
    if tries == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return tries


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_processes_end_with_the_one_that_started_them(tmp_path):
    """Killed, it cannot tell them."""
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from tests.engines.test_local import linger\n"
        "from caveat.engines import spread\n"
        "if __name__ == '__main__':\n"
        "    list(spread(linger, [Path(sys.argv[1]) / n for n in 'ab'], 2))\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths},
    ) as process:
        try:
            pids = [said(tmp_path / name) for name in "ab"]
        finally:
            process.kill()
    end = time.monotonic() + 30.0
    while any(map(is_alive, pids)):
        assert time.monotonic() < end
        time.sleep(0.05)


def linger(path):
    path.write_text(str(os.getpid()))
    time.sleep(600.0)


def said(path):
    end = time.monotonic() + 60.0
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return int(path.read_text())


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")  # a zombie that nobody has waited for is dead
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return status.parent.exists()
