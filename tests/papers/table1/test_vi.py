"""How long the networks of protocol vi are trained; runs are in test_experiment.py."""

import math

from caveat.noise import FactorisedGaussian
from caveat.papers.table1.jobs import Job
from caveat.papers.table1.vi import BATCH, LEAST_STEPS, vi_spec


def job(dataset, **changes):
    return Job("vi", ("1 layer",), dataset, (0,), **changes)


def test_small_sets_have_the_least_number_of_steps(real_data):
    spec = vi_spec(job("yacht"), 277)
    assert isinstance(spec.noise, FactorisedGaussian) and spec.hidden == (50,)
    steps = spec.schedule.epochs * math.ceil(277 / BATCH)
    assert LEAST_STEPS <= steps < LEAST_STEPS + math.ceil(277 / BATCH)


def test_large_sets_have_the_epochs_of_the_paper(real_data):
    assert vi_spec(job("protein"), 41_157).schedule.epochs == 200
    assert vi_spec(job("protein", quick=True), 41_157).schedule.epochs == 10
