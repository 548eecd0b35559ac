"""A batch gathered: draws go to the accumulator, errors come from the reading."""

import torch
from torch import nn

from caveat import MCDropout
from caveat.predictive import GaussianAccumulator
from caveat.sampling.closed_form.gathering import Gathering
from caveat.sampling.closed_form.readings import reading_of
from caveat.sampling.inputs import Batch
from caveat.sampling.jobs import Job
from tests.sampling.closed_form.nets import numbers, seeded

MODEL = seeded(lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 1)))
TAU = torch.tensor(4.0)


def gathering(analytic: bool) -> Gathering:
    session = MCDropout(MODEL, seed=0)._sampler.session(
        Batch.of((numbers(4, 3),), {}, axis=0, model=MODEL)
    )
    job = Job(20, None, 20, True, "regress", None)
    reading = reading_of(job, session, analytic)
    return Gathering(reading, GaussianAccumulator(TAU, True), TAU)


def test_draws_reach_the_accumulator():
    found = gathering(False)
    assert sum(found.take(range(20))) == 20
    assert found.accumulator.result().n_draws == 20
    assert found.relative_error() == found.accumulator.relative_error() > 0
    found.finish()
    assert found.found is None


def test_closed_forms_have_no_error():
    found = gathering(True)
    assert list(found.take(range(20))) == [20]
    assert found.relative_error() == 0
    found.finish()
    assert found.found.method == "exact"
    found.finish()
    assert found.found.method == "exact"
