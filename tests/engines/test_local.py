"""Jobs on several processes."""

import math
import os
import signal
import time

import pytest
from threadpoolctl import threadpool_info

from caveat.engines import spread


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
