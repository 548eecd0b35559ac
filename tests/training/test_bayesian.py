"""Bayesian optimisation: few trials find what a finer search would."""

import logging
import math
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

import caveat.training.bayesian as module
from caveat.errors import CaveatWarning, MissingExtraError, ParameterError
from caveat.evaluation.precision import BestScale
from caveat.training import (
    Choices,
    FileStore,
    GaussianWithPrecision,
    LogUniform,
    NetworkSpec,
    Schedule,
    Task,
    bayesian_search,
    grid_search,
)
from caveat.training.folds import last_fifth
from caveat.training.search import validated as validated_for_real

optuna = pytest.importorskip("optuna")

BASE = NetworkSpec((8,), drop_rate=0.05, schedule=Schedule(epochs=20), n_draws=50)
TAU = {"precision": LogUniform(0.01, 1000.0)}


def a_task(name="a", seed=0, n_rows=100):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 2))
    return Task(name, x, np.sin(x[:, :1]) + 0.3 * rng.normal(size=(n_rows, 1)), seed)


@pytest.fixture
def rounds(monkeypatch):
    """What is asked for, round by round; a formula instead of a training."""
    asked = []

    def formula(pairs, **how):
        asked.append(list(pairs))
        return [BestScale(1.0, density(c)) for _, c in pairs]

    monkeypatch.setattr(module, "validated", formula)
    return asked


def density(candidate):
    """Of a Gaussian with variance 1/5 as a function of tau; two layers are worse."""
    tau = candidate.precision
    worse = 0.5 if candidate.hidden == (8, 8) else 0.0
    return 0.5 * (math.log(tau / (2 * math.pi)) - tau / 5) - worse


def test_optimum_of_a_formula_in_few_trials(rounds):
    [choice] = bayesian_search([a_task()], TAU, BASE, n_trials=12, at_once=4)
    best = density(replace(BASE, precision=5.0))
    assert choice.score.log_likelihood > best - 0.02
    assert len(choice.scores) == 12


def test_it_is_better_than_chance(rounds):
    """Of as many points drawn at random, the best is farther off in most runs."""
    best, wins = density(replace(BASE, precision=5.0)), 0
    for seed in range(3):
        tasks = [a_task(seed=seed)]
        [choice] = bayesian_search(tasks, TAU, BASE, n_trials=8)
        found = best - choice.score.log_likelihood
        rng = np.random.default_rng(seed)
        points = 0.01 * 1e5 ** rng.random((200, 8))
        values = [[density(replace(BASE, precision=t)) for t in row] for row in points]
        wins += found < best - np.median(np.max(values, 1))
    assert wins >= 2


def test_candidates_are_asked_for_in_batches(rounds):
    tasks = [a_task("a"), a_task("b", 1)]
    bayesian_search(tasks, TAU, BASE, n_trials=8, at_once=3)
    assert [len(pairs) for pairs in rounds] == [6, 6, 4]
    assert [task.name for task, _ in rounds[0]] == ["a"] * 3 + ["b"] * 3


def test_a_batch_is_not_one_point_again_and_again(rounds):
    """What is still asked for counts when the next is chosen."""
    tasks = [a_task()]
    bayesian_search(tasks, TAU, BASE, n_trials=8, at_once=4)
    second = np.log([c.precision for _, c in rounds[1]])
    assert np.diff(np.sort(second)).max() > 0.05 * math.log(1e5)


def test_first_candidates_fill_the_space(rounds):
    tasks = [a_task()]
    bayesian_search(tasks, TAU, BASE, n_trials=5, at_once=5)
    shares = [math.log(c.precision / 0.01) / math.log(1e5) for _, c in rounds[0]]
    assert sorted(int(5 * share) for share in shares) == [0, 1, 2, 3, 4]


def test_choices_and_ranges_together(rounds):
    space = TAU | {
        "hidden": Choices((8,), (8, 8)),
        "epochs": LogUniform(10, 1000),
        "drop_rate": Choices(0.01, 0.1),
    }
    [choice] = bayesian_search([a_task()], space, BASE, n_trials=10)
    assert {candidate.hidden for candidate in choice.scores} == {(8,), (8, 8)}
    assert choice.score.log_likelihood == max(map(density, choice.scores))
    for candidate in choice.scores:
        epochs = candidate.schedule.epochs
        assert isinstance(epochs, int) and 10 <= epochs <= 1000
        assert candidate.drop_rate in (0.01, 0.1)
        assert candidate.lengthscale == BASE.lengthscale


def test_choices_alone_may_run_out(rounds):
    space = {"precision": Choices(1.0, 5.0)}
    [choice] = bayesian_search([a_task()], space, BASE, n_trials=6)
    assert choice.spec.precision == 5.0 and len(choice.scores) == 2


def test_same_seed_same_trials(rounds):
    def asked(seed=0, task_seed=0):
        rounds.clear()
        tasks = [a_task(seed=task_seed)]
        bayesian_search(tasks, TAU, BASE, seed=seed, n_trials=6, at_once=3)
        return [c.precision for pairs in rounds for _, c in pairs]

    first = asked()
    assert first == asked()
    assert first != asked(seed=1)
    assert first != asked(task_seed=1)


def test_a_task_is_not_led_by_its_neighbours(rounds):
    alone = bayesian_search([a_task()], TAU, BASE, n_trials=6)
    tasks = [a_task("b", 3), a_task()]
    assert bayesian_search(tasks, TAU, BASE, n_trials=6)[1:] == alone


def test_it_finds_the_precision_of_a_one_dimensional_search():
    tasks = [a_task(f"split {k}", k) for k in range(2)]
    how = {"folds": last_fifth, "n_threads": 1}
    found = bayesian_search(tasks, TAU, BASE, n_trials=8, at_once=4, **how)
    exact = grid_search(tasks, [BASE], **how)
    for ours, best in zip(found, exact, strict=True):
        gap = best.score.log_likelihood - ours.score.log_likelihood
        assert abs(gap) < 0.03
        assert ours.spec.precision == ours.score.scale
        assert abs(math.log(ours.score.scale / best.score.scale)) < 0.6


def test_interrupted_searches_ask_again_and_go_on(tmp_path, monkeypatch):
    how = {"base": BASE, "n_trials": 6, "at_once": 2, "folds": last_fifth}
    whole = bayesian_search([a_task()], TAU, **how)
    path, rounds = tmp_path / "scores", []

    def interrupted(*args, **kwargs):
        rounds.append(args)
        if len(rounds) == 3:
            raise KeyboardInterrupt
        return validated_for_real(*args, **kwargs)

    monkeypatch.setattr(module, "validated", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bayesian_search([a_task()], TAU, store=FileStore(path), **how)
    assert len(FileStore(path)) == 4
    before = path.read_bytes()
    monkeypatch.setattr(module, "validated", validated_for_real)
    resumed = bayesian_search([a_task()], TAU, store=FileStore(path), **how)
    assert resumed == whole
    assert path.read_bytes().startswith(before) and len(FileStore(path)) == 6


def test_a_divergence_is_survived(rounds, monkeypatch):
    def formula(pairs, **how):
        return [
            BestScale(math.nan, -math.inf)
            if c.precision > 100
            else BestScale(1.0, density(c))
            for _, c in pairs
        ]

    monkeypatch.setattr(module, "validated", formula)
    [choice] = bayesian_search([a_task()], TAU, BASE, n_trials=8)
    assert any(s.log_likelihood == -math.inf for s in choice.scores.values())
    assert choice.score.log_likelihood > density(replace(BASE, precision=5.0)) - 0.1


def test_if_all_diverge_the_error_says_so():
    wild = BASE.vary(learning_rate=1e30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaveatWarning)
        with pytest.raises(ParameterError, match="all candidates diverged"):
            bayesian_search([a_task()], TAU, wild, n_trials=5)


def test_optunas_messages_are_off_only_meanwhile(rounds, capfd):
    optuna.logging.set_verbosity(logging.DEBUG)
    try:
        bayesian_search([a_task()], TAU, BASE, n_trials=6)
        assert optuna.logging.get_verbosity() == logging.DEBUG
    finally:
        optuna.logging.set_verbosity(logging.INFO)
    assert capfd.readouterr() == ("", "")


def test_without_optuna_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"caveat\[search\]"):
        bayesian_search([a_task()], TAU, BASE)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({}, "at least one setting"),
        ({"rate": Choices(0.1)}, r"'drop_rate', .* Got 'rate'"),
        ({"drop_rate": (0.1, 0.2)}, "must be LogUniform or Choices"),
    ],
)
def test_spaces_that_make_no_sense_are_refused(space, message):
    with pytest.raises(ParameterError, match=message):
        bayesian_search([a_task()], space, BASE)


def test_a_noise_head_leaves_no_precision_to_find():
    head = BASE.vary(objective=GaussianWithPrecision())
    with pytest.raises(ParameterError, match="noise head, which learns it"):
        bayesian_search([a_task()], TAU, head)


@pytest.mark.parametrize("name", ["n_trials", "at_once"])
def test_numbers_are_at_least_one(name):
    with pytest.raises(ParameterError, match=f"{name} must be at least 1"):
        bayesian_search([a_task()], TAU, BASE, **{name: 0})


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (2.0, 1.0), (1.0, math.inf)])
def test_ranges_are_above_0_and_in_order(bounds):
    with pytest.raises(ParameterError, match="must be"):
        LogUniform(*bounds)


def test_choices_hold_something():
    with pytest.raises(ParameterError, match="at least one"):
        Choices()


@pytest.mark.parametrize("values", [[3.0, 2.0, -5.0, -1e6, -math.inf]])
def test_flattening_keeps_the_order_and_what_is_above_the_floor(values):
    flat = [module._flattened(v, 0.0) for v in values]
    assert flat[:2] == [3.0, 2.0]
    assert flat == sorted(flat, reverse=True) and min(flat) >= -20.0
