"""One network, trained and scored."""

from dataclasses import replace

import pytest
import torch

from caveat.papers.sequence.runs import ReaderJob, run_job
from caveat.papers.sequence.texts import (
    TASKS,
)
from tests.papers.sequence.samples import TINY


def timeless(records):
    return [replace(r, seconds=0.0) for r in records]


@pytest.mark.parametrize("task", TASKS)
def test_a_job_scores_each_epoch_and_both_tests(task, real_data):
    state = torch.random.get_rng_state()
    job = ReaderJob(task, "sequence", 0.25, 3)
    records = run_job(job, TINY)
    assert torch.equal(torch.random.get_rng_state(), state)
    parts = ["validation", "validation", "test", "test_stopped"]
    assert [r.part for r in records] == parts
    assert [r.n_draws for r in records] == [2, 2, 3, 3]
    assert [r.epoch for r in records[:3]] == [1, 2, 2]
    best = max(records[:2], key=lambda r: r.log_likelihood)
    assert (records[3].epoch, records[3].precision) == (best.epoch, best.precision)
    assert timeless(run_job(job, TINY)) == timeless(records)


def test_without_masks_there_is_one_draw(real_data):
    for record in run_job(ReaderJob("sentiment", "none", 0.0, 0), TINY):
        assert record.n_draws == 1
        assert record.error == record.point_error
        assert record.log_likelihood == record.point_log_likelihood
