"""Draws on their way: all reach the predictive, as many as were asked for."""

import weakref
from functools import partial

import pytest
import torch
from torch import nn

from caveat import MCDropout
from caveat._progress import ProgressBar
from caveat.errors import ParameterError
from caveat.predictive import CategoricalAccumulator, GaussianAccumulator
from caveat.sampling.closed_form.readings import closed_reading
from caveat.sampling.endings import find_ending
from caveat.sampling.gathering import Gathering, Reading, Rounds, Sampled
from caveat.sampling.inputs import Batch
from caveat.sampling.outputs import Picker
from caveat.sampling.shelf import Shelf
from caveat.sampling.sources import Batches
from tests.sampling.closed_form.nets import numbers, seeded

MODEL = seeded(lambda: nn.Sequential(nn.Dropout(0.3), nn.Linear(3, 2)))
TAU = torch.tensor(4.0)
PICKER = Picker("regress")
BAR = ProgressBar("draws", None, False)
X = numbers(4, 3)
CALM = torch.tensor([[1e-3, 0.0, 0.0]]).double()  # next to no spread


def batch_of(x: torch.Tensor) -> Batch:
    return Batch.of((x,), {}, axis=0, model=MODEL)


def source(*parts: torch.Tensor, passes_once: bool = False) -> Batches:
    return Batches(lambda: iter(map(batch_of, parts)), passes_once=passes_once)


def sampled(batch: Batch) -> Reading:
    return Sampled(MCDropout(MODEL, seed=0)._sampler.session(batch), PICKER)


def closed(batch: Batch) -> Reading:
    own = MCDropout(MODEL, seed=0)._sampler.session(batch)
    ending = find_ending(own.tape, own.tape.outputs[0].number)
    return closed_reading(own, PICKER, ending, at_any_cost=True)


def gathering(rounds: Rounds, read=sampled, shelf: Shelf | None = None) -> Gathering:
    accumulator = partial(GaussianAccumulator, TAU, False)
    return Gathering(read, rounds, accumulator, BAR, TAU, shelf)


def test_draws_reach_the_accumulator():
    (part,) = gathering(Rounds(20)).gather(source(X))
    expected = MCDropout(MODEL, seed=0).draws(X, n_draws=20)
    assert part.n_draws == part.result.n_draws == 20
    assert torch.allclose(part.result.mean, expected.mean(0))
    assert part.found is None


def test_closed_forms_have_no_error():
    (part,) = gathering(Rounds(20, tolerance=0.01), closed).gather(source(X))
    assert part.n_draws == 32
    assert part.found.method == "exact"


@pytest.mark.parametrize("passes_once", [True, False])
@pytest.mark.parametrize("tolerance", [None, 0.02])
def test_all_draws_of_all_batches_are_kept(tolerance, passes_once):
    shelf, rounds = Shelf(), Rounds(7, tolerance, max_draws=3000)
    batches = source(CALM, X, passes_once=passes_once)
    parts = gathering(rounds, shelf=shelf).gather(batches)
    n_draws = parts[0].n_draws
    assert parts[1].n_draws == n_draws
    assert n_draws == 7 if tolerance is None else n_draws > 32
    assert parts[0].result is parts[1].result is None
    rows = torch.cat([CALM, X])
    expected = MCDropout(MODEL, seed=0).draws(rows, n_draws=n_draws)
    assert torch.allclose(shelf.whole(n_draws), expected)


TIGHT = Rounds(5, tolerance=0.02, max_draws=3000)


@pytest.mark.parametrize("order", [(CALM, X), (X, CALM)], ids=["late", "early"])
def test_batches_go_on_until_the_worst_is_good_enough(order):
    counts = [part.n_draws for part in gathering(TIGHT).gather(source(*order))]
    (whole,) = gathering(TIGHT).gather(source(torch.cat(order)))
    assert counts == [whole.n_draws] * 2
    assert whole.n_draws > 32


def test_batches_that_pass_stop_one_by_one():
    passing = source(CALM, X, CALM, passes_once=True)
    parts = gathering(TIGHT).gather(passing)
    assert [part.n_draws for part in parts][::2] == [32, 32]
    assert parts[1].n_draws > 32
    for part in parts:
        assert bool((part.result.mean_error <= 0.02 * part.result.std).all())


def test_one_batch_is_there_at_a_time():
    """The session of a batch is gone when the next is begun."""
    alive: list[weakref.ref] = []

    def read(batch: Batch) -> Reading:
        assert [ref for ref in alive if ref() is not None] == []
        reading = sampled(batch)
        alive.append(weakref.ref(reading._session))
        return reading

    for passes_once in (True, False):
        parts = source(CALM, X, CALM, passes_once=passes_once)
        gathering(TIGHT, read).gather(parts)
    assert len(alive) >= 6


def test_classes_have_errors_of_their_own():
    rounds = Rounds(5, tolerance=0.2, max_draws=64)
    accumulator = partial(CategoricalAccumulator, 0, False)
    (part,) = Gathering(sampled, rounds, accumulator, BAR).gather(source(X))
    assert part.n_draws in (32, 64)


def test_rounds_double_up_to_the_cap():
    rounds = Rounds(5, tolerance=0.1, max_draws=100)
    assert rounds.first() == range(32)
    assert rounds.after(32, 0.2) == range(32, 64)
    assert rounds.after(64, 0.2) == range(64, 100)
    assert not rounds.after(100, 0.2)
    assert not rounds.after(32, 0.1)


def test_without_a_tolerance_there_is_one_round():
    assert Rounds(5).first() == range(5)
    assert not Rounds(5).after(5, 9.0)


@pytest.mark.parametrize(
    "wrong", [{"n_draws": 0}, {"max_draws": 0}, {"tolerance": 1.5}], ids=str
)
def test_what_cannot_be_asked(wrong):
    with pytest.raises(ParameterError):
        Rounds(**{"n_draws": 5, **wrong})


@pytest.mark.parametrize("kind", ["regress", "classify"])
def test_batches_that_stop_by_themselves_have_errors_of_their_own(kind):
    """Those of the batch alone, whose draws need not be as many as of the first."""
    model = seeded(
        lambda: nn.Sequential(
            *(nn.Linear(3, 20), nn.ReLU(), nn.Dropout(0.2), nn.Linear(20, 20)),
            *(nn.ReLU(), nn.Dropout(0.2), nn.Linear(20, 2)),
        )
    )
    asked = {"precision": 0.5} if kind == "regress" else {}
    options = asked | {"tolerance": 0.02, "keep_draws": False}
    ask = getattr(MCDropout(model, seed=0), kind)
    wide = [numbers(30, 3) * size for size in (0.1, 1.0, 12.0)]
    single = [ask(iter([x]), **options) for x in wide]
    found = ask(iter(wide), **options)
    assert len({one.n_draws for one in single}) > 1
    assert found.n_draws == min(one.n_draws for one in single)
    expected = torch.cat([one.mean_error for one in single])
    assert torch.equal(found.mean_error, expected)
