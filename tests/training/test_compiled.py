"""The compiled kernel trains the networks that torch does, up to rounding."""

import signal
import threading
import time
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from caveat.errors import CaveatError, CaveatWarning, UnsupportedModelError
from caveat.training import (
    GaussianWithPrecision,
    Member,
    NetworkSpec,
    Rows,
    Schedule,
    SoftmaxCrossEntropy,
    SquaredError,
    Watch,
    compiled,
    kernel_status,
    train,
)
from caveat.training import kernel as kernel_module
from caveat.training.activations import ACTIVATIONS
from caveat.training.objectives import Likelihood
from caveat.training.schedules import DECAYS

needs_kernel = pytest.mark.skipif(
    not kernel_status().is_compiled, reason="there is no compiled kernel here"
)

SPEC = NetworkSpec(
    (9,), drop_rate=0.2, input_drop_rate=0.1, schedule=Schedule(6, 16, keep_last=True)
)
OBJECTIVES = [
    SquaredError(),
    GaussianWithPrecision(),
    GaussianWithPrecision(beta=0.5),
    SoftmaxCrossEntropy(5),
]


def some_rows(objective=SPEC.objective, *, n_rows=40, n_inputs=5, n_targets=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(n_rows, n_targets))
    if isinstance(objective, SoftmaxCrossEntropy):
        y = rng.integers(objective.n_classes, size=n_rows)
    return Rows.of(rng.normal(size=(n_rows, n_inputs)), y)


def some_members(spec=SPEC, count=2):
    penalties = tuple(1e-3 * (1 + i) for i in range(len(spec.drop_rates)))
    return [Member(str(i), spec, penalties, 1e-4 * i, seed=i) for i in range(count)]


def assert_both_roads_meet(members, data, watch=None):
    ours, torchs = (
        train(members, data, watch=watch, compiled=road) for road in (True, False)
    )
    torch.testing.assert_close(ours.parameters, torchs.parameters, rtol=1e-4, atol=1e-5)
    assert ours.stopped.tolist() == torchs.stopped.tolist()
    assert [m.name for m in ours.members] == [m.name for m in torchs.members]
    first = train(members, data, watch=watch, n_threads=1).parameters
    assert not torch.equal(first, torch.zeros_like(first))
    return ours


@needs_kernel
@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation(activation, noise):
    spec = SPEC.vary(hidden=(9, 20), activation=activation, noise=noise)
    assert_both_roads_meet(some_members(spec), [some_rows()])


@needs_kernel
@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("n_targets", [1, 3])
def test_every_objective(objective, noise, n_targets):
    spec = SPEC.vary(objective=objective, noise=noise)
    rows = some_rows(objective, n_targets=n_targets)
    assert_both_roads_meet(some_members(spec), [rows])


@needs_kernel
@pytest.mark.parametrize(
    "hidden",
    [(), (1,), (4,), (5,), (8,), (16, 17), (33, 2, 9), (3,) * 8, (70, 130)],
    ids=str,
)
@pytest.mark.parametrize(("n_inputs", "n_targets"), [(1, 1), (13, 4), (40, 9)])
def test_layers_of_any_width(hidden, n_inputs, n_targets):
    spec = SPEC.vary(hidden=hidden, activation="cos", learning_rate=1e-3)
    rows = some_rows(n_inputs=n_inputs, n_targets=n_targets)
    assert_both_roads_meet(some_members(spec), [rows])


@needs_kernel
@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("keep_last", [True, False])
@pytest.mark.parametrize("batch_size", [1, 7, 32, 64])
def test_every_schedule(decay, keep_last, batch_size):
    schedule = Schedule(3, batch_size, decay=decay, keep_last=keep_last)
    assert_both_roads_meet(some_members(SPEC.vary(schedule=schedule)), [some_rows()])


@needs_kernel
def test_members_that_differ_in_all_they_may(monkeypatch):
    monkeypatch.setattr(compiled, "_MOST_STEPS", 4)
    data = [some_rows(), some_rows(n_rows=21, seed=1)]
    members = [
        replace(
            member,
            spec=SPEC.vary(drop_rate=rate, input_drop_rate=first, **more),
            data=data_set,
        )
        for member, (rate, first, data_set, more) in zip(
            some_members(count=5),
            [
                (0.2, 0.0, 0, {"epochs": 9}),
                (0.0, 0.3, 1, {"learning_rate": 1e-3}),
                (0.0, 0.0, 1, {"epochs": 2}),
                (0.9, 0.9, 0, {}),
                (1e-6, 0.5, 0, {}),  # a rate that rounds to no noise
            ],
            strict=True,
        )
    ]
    together = assert_both_roads_meet(members, data)
    for i, member in enumerate(members):
        alone = train([member], data, compiled=True)
        assert torch.equal(alone.parameters[0], together.parameters[i])


@needs_kernel
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: type(o).__name__)
def test_early_stopping(objective):
    """Lengths that are no multiples of a look; members that stop at their own time."""
    spec = SPEC.vary(objective=objective, epochs=7, drop_rate=0.0, input_drop_rate=0.0)
    data = [some_rows(objective), some_rows(objective, n_rows=21, seed=1)]
    members = [replace(m, data=i % 2) for i, m in enumerate(some_members(spec, 4))]
    held = [some_rows(objective, n_rows=50, seed=9 + i) for i in range(4)]
    for every, patience in [(4, 100), (1, 2), (50, 1)]:
        watch = Watch(held, every=every, patience=patience)
        found = assert_both_roads_meet(members, data, watch)
        assert (found.stopped <= torch.tensor([21, 14, 21, 14])).all()


@needs_kernel
def test_a_watch_can_be_used_twice():
    held = [some_rows(seed=1)]
    watch = Watch(held, every=3, patience=50)
    for road in (True, False):
        for member in some_members():
            fresh = Watch(held, every=3, patience=50)
            again = train([member], [some_rows()], watch=watch, compiled=road)
            once = train([member], [some_rows()], watch=fresh, compiled=road)
            assert torch.equal(again.parameters, once.parameters)


@needs_kernel
def test_threads_change_no_bit():
    members = some_members(count=9)
    one, two = (
        train(members, [some_rows()], compiled=True, n_threads=n) for n in (1, 2)
    )
    assert torch.equal(one.parameters, two.parameters)


@needs_kernel
@pytest.mark.parametrize("road", [True, False])
def test_one_that_diverges_is_named(road):
    good, wild = some_members()
    wild = replace(wild, spec=SPEC.vary(learning_rate=1e38))
    with pytest.warns(CaveatWarning, match="'1'"):
        trained = train([good, wild], [some_rows()], compiled=road)
    assert trained.diverged == ("1",)
    alone = train([good], [some_rows()], compiled=road)
    torch.testing.assert_close(alone.parameters[0], trained.parameters[0])


# What it does not cover


@dataclass(frozen=True)
class HalfError(Likelihood):
    """A user's own."""

    def n_outputs(self, n_targets):
        return n_targets

    def loss(self, outputs, targets):
        return 0.25 * (outputs - targets).square().sum(-1)

    def gradient(self, outputs, targets):
        return 0.5 * (outputs - targets)


@needs_kernel
@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (SPEC.vary(objective=HalfError()), "the objective HalfError"),
        (SPEC.vary(hidden=(2,) * 40), "weight layers"),
        (SPEC.vary(hidden=(300, 4000)), "smaller networks"),
    ],
    ids=["objective", "deep", "wide"],
)
def test_others_go_the_old_road(spec, words):
    spec = spec.vary(epochs=1, batch_size=64)
    members = some_members(spec, 1)
    with pytest.raises(UnsupportedModelError, match=words):
        train(members, [some_rows()], compiled=True)
    both = [train(members, [some_rows()], compiled=road) for road in (None, False)]
    assert torch.equal(both[0].parameters, both[1].parameters)


@needs_kernel
def test_classes_out_of_range_are_never_an_address():
    spec = SPEC.vary(objective=SoftmaxCrossEntropy(5))
    rows = some_rows(spec.objective)
    rows.y[3] = 5
    with pytest.raises(UnsupportedModelError, match="class numbers in range"):
        train(some_members(spec), [rows], compiled=True)
    held = Watch([rows] * 2, every=1, patience=1)
    with pytest.raises(UnsupportedModelError, match="class numbers in range"):
        train(
            some_members(spec), [some_rows(spec.objective)], watch=held, compiled=True
        )


@pytest.mark.parametrize(
    ("watch", "words"),
    [
        (Watch([some_rows()], every=1, patience=1), "one set of rows per member, 2"),
        (Watch([some_rows(n_inputs=4)] * 2, every=1, patience=1), "set 0 of watch"),
        (Watch([some_rows(n_targets=1)] * 2, every=1, patience=1), "set 0 of watch"),
    ],
)
def test_rows_to_stop_by_must_fit(watch, words):
    with pytest.raises(CaveatError, match=words):
        train(some_members(), [some_rows()], watch=watch)


def test_without_a_kernel_torch_trains(monkeypatch):
    monkeypatch.setenv(kernel_module.SWITCH, "off")
    by_torch = train(some_members(), [some_rows()])
    expected = train(some_members(), [some_rows()], compiled=False)
    assert torch.equal(by_torch.parameters, expected.parameters)
    with pytest.raises(UnsupportedModelError, match="switched off by CAVEAT_KERNEL"):
        train(some_members(), [some_rows()], compiled=True)


# The comparison before first use


@pytest.fixture
def doubtful(monkeypatch):
    """A kernel that has not proved itself."""
    monkeypatch.setattr(compiled, "_TRUSTED", set())
    monkeypatch.setattr(kernel_module, "_FOUND", list(kernel_module._FOUND))


def spoiled_levels(drop_rates):
    thresholds, scales = REAL_LEVELS(drop_rates)
    return thresholds, 1.05 * scales


def spoiled_corrections(step):
    factor, epsilon = REAL_CORRECTIONS(step)
    return 1.02 * factor, epsilon


REAL_LEVELS, REAL_CORRECTIONS = compiled.drop_levels, compiled.corrections


@needs_kernel
@pytest.mark.parametrize(
    ("name", "spoiled"),
    [("drop_levels", spoiled_levels), ("corrections", spoiled_corrections)],
)
def test_a_kernel_that_differs_is_noticed_and_left(
    doubtful, monkeypatch, name, spoiled
):
    monkeypatch.setattr(compiled, name, spoiled)
    with pytest.warns(CaveatWarning, match="trains other networks than torch"):
        found = train(some_members(), [some_rows()])
    expected = train(some_members(), [some_rows()], compiled=False)
    assert torch.equal(found.parameters, expected.parameters)
    assert kernel_status() == (False, "its numbers differed from torch's")
    train(some_members(), [some_rows()])  # and is not warned of again


@needs_kernel
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("hidden", [(), (3,), (50, 50), (200,)], ids=str)
def test_a_good_kernel_is_far_from_doubt(objective, noise, hidden):
    own = kernel_module.kernel()
    for batch_size, activation in [(3, "relu"), (32, "relu"), (128, "tanh")]:
        spec = SPEC.vary(
            objective=objective,
            noise=noise,
            hidden=hidden,
            activation=activation,
            batch_size=batch_size,
        )
        assert compiled.disagreement(own, spec, 7, 1) < 0.1 * compiled._TOLERANCE


@needs_kernel
def test_it_is_compared_once_for_each_kind(doubtful, monkeypatch):
    seen = []
    real = compiled.disagreement

    def disagreement(own, spec, *sizes, seed):
        seen.append(spec.hidden)
        return real(own, spec, *sizes, seed=seed)

    monkeypatch.setattr(compiled, "disagreement", disagreement)
    for hidden in [(9,), (9,), (8,)]:
        train(some_members(SPEC.vary(hidden=hidden)), [some_rows()])
    train(some_members(), [some_rows(n_inputs=6)])
    assert seen == [(9,), (8,), (9,)]


# Manners


@needs_kernel
def test_torch_is_left_as_it_was():
    before = torch.get_num_threads(), torch.get_rng_state()
    tiny = torch.tensor(1e-40)
    train(some_members(), [some_rows()], n_threads=2, compiled=True)
    assert torch.get_num_threads() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    assert tiny * 0.5 > 0 and np.float32(1e-40) * np.float32(0.5) > 0


@needs_kernel
def test_ctrl_c_is_heard():
    members = some_members(SPEC.vary(hidden=(50,), epochs=3_000_000), 3)
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    start = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        train(members, [some_rows()], compiled=True)
    assert time.perf_counter() - start < 5  # 1.3 on a machine with nothing else to do


@needs_kernel
def test_progress_adds_up(monkeypatch):
    done = []
    monkeypatch.setattr(
        "caveat._progress.ProgressBar.advance", lambda self, by=1: done.append(by)
    )
    members = some_members()
    total = sum(member.n_steps([some_rows()]) for member in members)
    train(members, [some_rows()], compiled=True)
    assert sum(done) == total
    done.clear()
    watch = Watch([some_rows(seed=3)] * 2, every=1, patience=1)
    train(members, [some_rows()], watch=watch, compiled=True)
    assert sum(done) == total
