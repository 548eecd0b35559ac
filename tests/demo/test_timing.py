"""Timing runs the draws once, and the plain loop on a copy."""

import torch
from torch import nn

from caveat.demo.timing import Timing, timed
from caveat.sampling import MCDropout


def test_timed_returns_what_was_predicted_and_leaves_the_model_alone() -> None:
    net = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.5), nn.Linear(8, 1)).eval()
    x = torch.ones(3, 2)
    mc = MCDropout(net, seed=0)
    state = torch.get_rng_state()
    found, timing = timed(
        lambda: mc.regress(x, n_draws=7, precision=1.0), net, x, plain_passes=2
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(found.draws, mc.draws(x, n_draws=7))
    assert not any(module.training for module in net.modules())
    assert timing.plain_passes == 2
    assert timing.seconds > 0 and timing.plain_seconds > 0


def test_speed_up() -> None:
    assert Timing(2.0, 6.0, 3).speed_up == 3.0


def test_the_plain_loop_is_scaled_to_as_many_passes(monkeypatch) -> None:
    """By a clock that shows 0 and 2 s around the draws, 10 and 16 around 3 passes."""
    net = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.5), nn.Linear(8, 1)).eval()
    x, mc = torch.ones(3, 2), MCDropout(net, seed=0)
    predictive = mc.regress(x, n_draws=7, precision=1.0)
    clock = iter([0.0, 2.0, 10.0, 16.0])
    monkeypatch.setattr("caveat.demo.timing.time.perf_counter", lambda: next(clock))
    _, timing = timed(lambda: predictive, net, x, plain_passes=3)
    assert timing == Timing(2.0, 7 * 2.0, 3)
