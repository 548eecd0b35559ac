"""Draws on their way: all reach the predictive, as many as were asked for."""

import pytest
import torch
from torch import nn

from caveat import MCDropout
from caveat._progress import ProgressBar
from caveat.errors import ParameterError
from caveat.predictive import CategoricalAccumulator, GaussianAccumulator
from caveat.sampling.closed_form.readings import closed_reading
from caveat.sampling.endings import find_ending
from caveat.sampling.engine import Session
from caveat.sampling.gathering import Gathering, Rounds, Sampled, gather, keep
from caveat.sampling.inputs import Batch
from caveat.sampling.outputs import Picker
from tests.sampling.closed_form.nets import numbers, seeded

MODEL = seeded(lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2)))
TAU = torch.tensor(4.0)
PICKER = Picker("regress")
BAR = ProgressBar("draws", None, False)
X = numbers(4, 3)


def session(x: torch.Tensor = X) -> Session:
    batch = Batch.of((x,), {}, axis=0, model=MODEL)
    return MCDropout(MODEL, seed=0)._sampler.session(batch)


def closed() -> Gathering:
    own = session()
    ending = find_ending(own.tape, own.tape.outputs[0].number)
    reading = closed_reading(own, PICKER, ending, at_any_cost=True)
    return Gathering(reading, GaussianAccumulator(TAU, True), TAU)


def test_draws_reach_the_accumulator():
    found = Gathering(Sampled(session(), PICKER), GaussianAccumulator(TAU, True), TAU)
    assert sum(found.take(range(20))) == 20
    assert found.accumulator.result().n_draws == 20
    assert found.relative_error() == found.accumulator.relative_error() > 0
    found.finish()
    assert found.found is None


def test_closed_forms_have_no_error():
    found = closed()
    assert list(found.take(range(20))) == [20]
    assert found.relative_error() == 0
    found.finish()
    assert found.found.method == "exact"
    found.finish()
    assert found.found.method == "exact"


def test_all_draws_of_all_batches_are_kept():
    parts = [(Sampled(session(x), PICKER), BAR) for x in (X[:1], X[1:])]
    draws, found = keep(parts, 7)
    assert torch.allclose(draws, MCDropout(MODEL, seed=0).draws(X, n_draws=7))
    assert found == [None, None]


def test_batches_go_on_until_the_worst_is_good_enough():
    calm = torch.tensor([[1e-3, 0.0, 0.0]]).double()  # next to no spread
    parts = [(Sampled(session(x), PICKER), BAR) for x in (calm, X)]
    rounds = Rounds(5, tolerance=0.05, max_draws=3000)
    done = gather(parts, rounds, lambda: GaussianAccumulator(TAU, False), TAU)
    counts = [part.accumulator.result().n_draws for part in done]
    assert counts[0] == counts[1] > 32
    assert done[1].accumulator.relative_error() <= 0.05


def test_classes_have_errors_of_their_own():
    rounds = Rounds(5, tolerance=0.2, max_draws=64)
    parts = [(Sampled(session(), PICKER), BAR)]
    (done,) = gather(parts, rounds, lambda: CategoricalAccumulator(0, True))
    assert done.relative_error() == done.accumulator.relative_error() > 0


def test_rounds_double_up_to_the_cap():
    rounds = Rounds(5, tolerance=0.1, max_draws=100)
    assert rounds.first == range(32)
    assert rounds.after(32, [0.05, 0.2]) == range(32, 64)
    assert rounds.after(64, [0.2]) == range(64, 100)
    assert not rounds.after(100, [0.2])
    assert not rounds.after(32, [0.05, 0.1])


def test_without_a_tolerance_there_is_one_round():
    assert Rounds(5).first == range(5)
    assert not Rounds(5).after(5, [9.0])


@pytest.mark.parametrize(
    "wrong", [{"n_draws": 0}, {"max_draws": 0}, {"tolerance": 1.5}], ids=str
)
def test_what_cannot_be_asked(wrong):
    with pytest.raises(ParameterError):
        Rounds(**{"n_draws": 5, **wrong})
