"""Jobs on several processes."""

import math

import pytest
from threadpoolctl import threadpool_info

from caveat.papers.workers import spread


def threads(_):
    return max((library["num_threads"] for library in threadpool_info()), default=1)


def test_answers_come_in_the_order_of_the_jobs():
    assert list(spread(math.sqrt, [16.0, 4.0, 9.0], 1)) == [4.0, 2.0, 3.0]


def test_a_job_has_one_thread():
    assert list(spread(threads, [0], 1)) == [1]


def test_no_jobs_have_no_answers():
    assert list(spread(math.sqrt, [], 2)) == []


def test_errors_in_another_process_are_raised_after_the_answers_before_them():
    answers = spread(math.sqrt, [4.0, -1.0], 2)
    assert next(answers) == 2.0
    with pytest.raises(ValueError, match="math domain"):
        next(answers)
