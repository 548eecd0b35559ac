"""How the loss falls: looks at equal parts of the training, on both roads."""

import numpy as np
import pytest
import torch

from caveat.training.fleet import train
from caveat.training.looks import N_LOOKS, Looks, looked_at
from caveat.training.members import Member, Rows
from caveat.training.schedules import Schedule
from caveat.training.spec import NetworkSpec


def test_looks_are_at_equal_parts_and_only_once():
    looks, calls = Looks(40), []
    assert looks.left(0) == 2 and looks.left(3) == 1 and looks.left(40) == 0
    for step in range(1, 41):
        looks.take(step, lambda step=step: calls.append(step) or float(step))
    assert calls == list(range(2, 41, 2)) == looks.losses().tolist()


def test_few_steps_and_an_early_end():
    looks = Looks(5)
    looks.take(2, lambda: 7.0)
    assert np.isfinite(looks.losses()).sum() == 2 * N_LOOKS // 5
    assert (looks.losses()[: 2 * N_LOOKS // 5] == 7.0).all()


def test_many_rows_are_thinned():
    rows = Rows.of(np.arange(2001.0)[:, None], np.arange(2001.0))
    seen = looked_at(rows)
    assert len(seen) == 500 and (seen.x == seen.y).all()
    assert seen.x[0] == 0 and seen.x[-1] == 2000
    assert looked_at(seen) is seen


@pytest.mark.parametrize("compiled", [None, False])
def test_the_last_look_is_the_loss_of_the_trained_network(compiled):
    rng = np.random.default_rng(0)
    rows = Rows.of(rng.normal(size=(300, 3)), rng.normal(size=300))
    spec = NetworkSpec((20,), schedule=Schedule(epochs=20))
    members = [
        Member.of(spec.vary(epochs=e), f"{e}", precision=10.0, n_train=300, seed=e)
        for e in (20, 10)
    ]
    trained = train(members, [rows], compiled=compiled)
    assert trained.losses.shape == (2, N_LOOKS)
    for place in range(2):
        network = trained.network(place)
        own = members[place].spec.objective.loss(network(rows.x), rows.y).mean()
        torch.testing.assert_close(
            trained.losses[place, -1].float(), own.detach(), rtol=1e-4, atol=1e-6
        )
    assert (trained.losses[:, 0] > trained.losses[:, -1]).all()
    assert trained[[1]].losses.equal(trained.losses[[1]])


def test_both_roads_see_the_same():
    rng = np.random.default_rng(0)
    rows = Rows.of(rng.normal(size=(300, 3)), rng.normal(size=300))
    spec = NetworkSpec((20,), schedule=Schedule(epochs=20))
    members = [Member.of(spec, "a", precision=10.0, n_train=300, seed=1)]
    one, other = (train(members, [rows], compiled=c).losses for c in (None, False))
    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
