"""Early stopping keeps the best weights."""

import numpy as np
import pytest
import torch

from caveat.errors import ParameterError
from caveat.training import Member, NetworkSpec, Rows, Schedule, SquaredError, train
from caveat.training.members import Architecture
from caveat.training.stack import Stack
from caveat.training.stopping import Watch

SPEC = NetworkSpec((8,), drop_rate=0.0, schedule=Schedule(400, 16, keep_last=True))


@pytest.mark.parametrize("compiled", [None, False])
def test_watch_keeps_the_best_weights_and_stops(compiled):
    rng = np.random.default_rng(0)
    noise = Rows.of(rng.normal(size=(30, 3)), rng.normal(size=30))
    held_out = Rows.of(rng.normal(size=(200, 3)), rng.normal(size=200))
    member = Member("a", SPEC, (1e-3, 1e-3), 1e-4, seed=3)
    watch = Watch([held_out], every=10, patience=5)
    stopped = train([member], [noise], watch=watch, compiled=compiled)
    full = train([member], [noise], compiled=compiled)
    losses = [
        SquaredError().loss(t.mean_outputs(held_out.x)[0], held_out.y).mean()
        for t in (stopped, full)
    ]
    assert losses[0] < losses[1]
    assert 0 < stopped.stopped[0] < full.stopped[0] == 800
    assert stopped.stopped[0] % 10 == 0


def test_the_best_look_of_each_member_is_kept():
    """A network of one weight and one bias on the row x = 1, y = 0: loss (w + b)²/2."""
    stack = Stack(Architecture(1, (), 1), SquaredError())
    row = Rows(torch.ones(1, 1), torch.zeros(1, 1))
    watch = Watch([row, row], every=1, patience=2)
    looks = [[3.0, 1.0], [1.0, 2.0], [2.0, 3.0], [2.0, 0.0], [0.5, 0.0]]
    given_up = []
    for step, weights in enumerate(looks, 1):
        watch.look(stack, torch.tensor([[w, 0.0] for w in weights]), step)
        given_up.append(watch.has_given_up())
    best, when = watch.best(torch.empty(0), torch.empty(0))
    assert best[:, 0].tolist() == [1.0, 1.0] and when.tolist() == [2, 1]
    assert given_up == [False, False, False, True, True]


def test_without_a_look_all_is_as_it_was():
    state, steps = torch.ones(1, 2), torch.tensor([7])
    watch = Watch([Rows(torch.ones(1, 1), torch.ones(1, 1))], every=3, patience=1)
    assert watch.best(state, steps) == (state, steps)
    assert [watch.is_due(step) for step in (3, 4, 6)] == [True, False, True]


def test_no_rows_are_refused():
    with pytest.raises(ParameterError, match="one set per member"):
        Watch([], every=1, patience=1)


@pytest.mark.parametrize("wrong", [{"every": 0}, {"patience": 0}, {"every": -3}])
def test_looks_and_patience_are_positive(wrong):
    row = Rows(torch.ones(1, 1), torch.ones(1, 1))
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        Watch([row], **{"every": 1, "patience": 1, **wrong})
