"""Stacked networks: blocks, and factors that are made once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from caveat.training import Member, NetworkSpec, Rows, Schedule, train
from caveat.training import stacked as module

SPEC = NetworkSpec(
    (8, 4), drop_rate=0.3, input_drop_rate=0.2, schedule=Schedule(epochs=3)
)


def a_fleet(count=2):
    rng = np.random.default_rng(0)
    rows = Rows.of(rng.normal(size=(40, 3)), rng.normal(size=40))
    members = [
        Member.of(SPEC, str(i), precision=10.0, n_train=40, seed=i)
        for i in range(count)
    ]
    return train(members, [rows]), rows.x


def test_blocks_of_any_size_hold_the_same_draws(monkeypatch):
    trained, x = a_fleet()
    whole = trained.draws(x, n_draws=150)
    for group, drawn in ((64, 2**21), (64, 1), (7, 5000)):
        monkeypatch.setattr(module, "_GROUP", group)
        monkeypatch.setattr(module, "_DRAWN", drawn)
        blocks = list(trained.blocks(x, n_draws=150))
        assert len(blocks) > 1
        torch.testing.assert_close(torch.cat(blocks), whole)


def test_factors_are_made_once_for_the_same_draws(monkeypatch):
    trained, x = a_fleet()
    made = []
    real = module.factors_of

    def counted(*args):
        made.append(args)
        return real(*args)

    monkeypatch.setattr(module, "factors_of", counted)
    first = trained.draws(x, n_draws=20, seed=1)
    again = trained.draws(x[:3], n_draws=20, seed=1)
    assert len(made) == 1
    torch.testing.assert_close(again, first[:, :, :3])
    trained.draws(x, n_draws=20, seed=2)
    trained.draws(x.double(), n_draws=20, seed=2)
    assert len(made) == 3
    assert torch.equal(trained.draws(x, n_draws=20, seed=1), first)


def test_what_is_remembered_is_not_changed_by_drawing():
    trained, x = a_fleet()
    draws = [trained.draws(x, n_draws=20) for _ in range(3)]
    assert torch.equal(draws[0], draws[1]) and torch.equal(draws[1], draws[2])


def test_threads_draw_what_one_draws():
    trained, x = a_fleet()
    alone = [trained.draws(x, n_draws=30, seed=seed) for seed in range(3)]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(
            lambda turn: trained.draws(x, n_draws=30, seed=turn % 3), range(40)
        )
        for turn, draws in enumerate(found):
            assert torch.equal(draws, alone[turn % 3])


def test_the_inputs_are_not_changed():
    trained, x = a_fleet()
    before = x.clone()
    trained.draws(x, n_draws=3)
    trained.mean_outputs(x)
    assert torch.equal(x, before)
