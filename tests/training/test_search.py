"""Searches over grids: the best by validation, with no leak, resumed if broken off."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

import caveat.training.search as module
from caveat.errors import CaveatWarning, ParameterError
from caveat.training import (
    GaussianWithPrecision,
    Memory,
    NetworkSpec,
    Problem,
    Schedule,
    SquaredError,
    Task,
    fit_ensembles,
    grid_search,
)
from caveat.training.folds import folds_by_size, last_fifth
from caveat.training.likelihood import best_scale
from caveat.training.search import held_out_residuals, validated

SPEC = NetworkSpec((8,), schedule=Schedule(epochs=10), n_draws=50)
GRID = [
    SPEC.vary(drop_rate=rate, input_drop_rate=on_features)
    for rate in (0.01, 0.3)
    for on_features in (0.0, 0.3)
]


def a_task(name="a", *, n_rows=60, seed=0, n_inputs=2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, n_inputs))
    return Task(name, x, np.tanh(x[:, :1]) + 0.1 * rng.normal(size=(n_rows, 1)), seed)


@pytest.fixture
def fleets(monkeypatch):
    """What is trained during a test: one list of (problem, ensemble) per fleet."""
    seen = []

    def recording(problems, **how):
        found = fit_ensembles(problems, **how)
        seen.append(list(zip(problems, found, strict=True)))
        return found

    monkeypatch.setattr(module, "fit_ensembles", recording)
    return seen


def test_choice_is_the_best_of_trainings_one_by_one():
    task = a_task()
    [choice] = grid_search([task], GRID, n_threads=1)
    expected = {spec: one_by_one(task, spec) for spec in GRID}
    best = max(GRID, key=lambda c: expected[c].log_likelihood)
    assert choice.spec == best and choice.score == choice.scores[best]
    for spec, score in expected.items():
        assert_same(choice.scores[spec], score)


def assert_same(found, expected):
    """But for the rounding of batched products; the scale is found to 0.1 %."""
    assert found.scale == pytest.approx(expected.scale, rel=2e-3)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=1e-5)


def one_by_one(task, spec):
    """The score of a spec, restated fold by fold."""
    found = []
    for train, valid in folds_by_size(len(task.x)):
        problem = Problem("p", task.x[train], task.y[train], spec, seed=task.seed)
        [ensemble] = fit_ensembles([problem], n_threads=1)
        rows = task.x[valid], task.y[valid]
        found.append(held_out_residuals(ensemble, *rows, spec.n_draws))
    variance = task.y.var()
    return best_scale(found, low=1e-2 / variance, high=1e6 / variance)


def test_a_given_precision_is_the_one_scored():
    task, spec = a_task(), GRID[0].vary(precision=3.0)
    [score] = validated([(task, spec)])
    free = validated([(task, GRID[0])])[0]
    assert score.scale == 3.0
    assert score.log_likelihood < free.log_likelihood


@pytest.mark.parametrize("objective", [SquaredError(), GaussianWithPrecision()])
@pytest.mark.parametrize("unit", [1e-22, 1e-17, 1e22])
def test_units_of_y_do_not_matter(unit, objective):
    """Squared errors of such targets lie outside the range of 32 bits."""
    spec, task = SPEC.vary(objective=objective), a_task()
    [plain] = grid_search([task], [spec])
    [scaled] = grid_search([replace(task, y=task.y * unit)], [spec])
    scale = scaled.score.scale * (1.0 if objective.has_head else unit**2)
    assert scale == pytest.approx(plain.score.scale, rel=1e-2)
    shift = math.log(unit)
    expected = plain.score.log_likelihood - shift
    assert scaled.score.log_likelihood == pytest.approx(expected, abs=1e-4)


def test_noise_head_finds_a_factor():
    [choice] = grid_search([a_task()], [SPEC.vary(objective=GaussianWithPrecision())])
    assert 1e-4 < choice.score.scale < 1e2


def test_all_cells_are_trained_at_once(fleets):
    tasks = [a_task("a"), a_task("b", seed=1)]
    grid_search(tasks, GRID)
    assert [len(fleet) for fleet in fleets] == [2 * 4 * 5]


def test_a_score_does_not_depend_on_the_other_candidates():
    [together] = grid_search([a_task()], GRID)
    for spec in GRID:
        [alone] = grid_search([a_task()], [spec])
        assert_same(alone.score, together.scores[spec])


def test_other_shapes_make_other_fleets(fleets):
    tasks = [a_task("a"), a_task("b", n_inputs=3)]
    grid = [GRID[0], GRID[0].vary(hidden=(4, 4))]
    choices = grid_search(tasks, grid, folds=last_fifth)
    assert len(fleets) == 4 and len(choices) == 2


def test_large_grids_are_trained_in_parts(fleets, monkeypatch):
    [whole] = grid_search([a_task()], GRID)
    monkeypatch.setattr(module, "_AT_ONCE", 10)
    [parts] = grid_search([a_task()], GRID)
    assert [len(fleet) for fleet in fleets] == [20, 10, 10]
    for spec in GRID:
        assert_same(whole.scores[spec], parts.scores[spec])


def test_long_trainings_are_stored_more_often(fleets, monkeypatch):
    monkeypatch.setattr(module, "_LEAST_AT_ONCE", 5)
    monkeypatch.setattr(module, "_WORK", 5 * 48 * 10)
    grid_search([a_task()], GRID)
    assert [len(fleet) for fleet in fleets] == [5] * 4


def test_a_fold_learns_nothing_of_its_validation_rows(fleets):
    task = a_task()
    [fold] = last_fifth(len(task.x))
    x, y = task.x.copy(), task.y.copy()
    x[fold.valid] = 1e3 * x[fold.valid][::-1] + 7.0
    y[fold.valid] = -1e6
    other = Task("a", x, y)
    for one in (task, other):
        grid_search([one], GRID, folds=last_fifth)
    trained = [part for fleet in fleets for part in fleet]
    for (_, plain), (_, changed) in zip(trained[:4], trained[4:], strict=True):
        assert torch.equal(plain.trained.parameters, changed.trained.parameters)
        for name in ("x_mean", "x_std", "y_mean", "y_std"):
            np.testing.assert_array_equal(
                getattr(plain.scaling, name), getattr(changed.scaling, name)
            )


def test_a_training_row_does_change_the_training(fleets):
    """The test above could fail."""
    task = a_task()
    y = task.y.copy()
    y[0] += 1.0
    for one in (task, Task("a", task.x, y)):
        grid_search([one], GRID[:1], folds=last_fifth)
    [(_, plain)], [(_, changed)] = fleets
    assert not torch.equal(plain.trained.parameters, changed.trained.parameters)


def test_same_seed_same_choice_other_seed_other_scores():
    tasks = [a_task()]
    first = grid_search(tasks, GRID)
    assert first == grid_search(tasks, GRID)
    assert first != grid_search(tasks, GRID, seed=1)
    other = [replace(tasks[0], seed=1)]
    assert first != grid_search(other, GRID)


def test_what_is_stored_is_not_trained_again(fleets):
    store, task = Memory(), a_task()
    grid_search([task], GRID[:3], store=store)
    [resumed] = grid_search([task], GRID, store=store)
    assert [len(fleet) for fleet in fleets] == [15, 5]
    [whole] = grid_search([task], GRID)
    for spec in GRID:
        assert_same(resumed.scores[spec], whole.scores[spec])


CHANGES = {
    "rows": lambda task, how: (replace(task, x=task.x + 1e-9), how),
    "order": lambda task, how: (replace(task, x=task.x[::-1], y=task.y[::-1]), how),
    "targets": lambda task, how: (replace(task, y=2 * task.y), how),
    "seed of the task": lambda task, how: (replace(task, seed=9), how),
    "seed": lambda task, how: (task, how | {"seed": 1}),
    "draws": lambda task, how: (task, how | {"specs": [GRID[0].vary(n_draws=9)]}),
    "rate": lambda task, how: (task, how | {"specs": [GRID[1]]}),
    "noise": lambda task, how: (
        task,
        how | {"specs": [GRID[0].vary(noise="gaussian")]},
    ),
    "epochs": lambda task, how: (task, how | {"specs": [GRID[0].vary(epochs=9)]}),
    "folds": lambda task, how: (task, how | {"folds": last_fifth}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_scores_of_other_circumstances_are_not_mistaken(fleets, change):
    store, task = Memory(), a_task()
    how = {"specs": GRID[:1], "folds": folds_by_size}
    grid_search([task], store=store, **how)
    task, how = CHANGES[change](task, how)
    grid_search([task], store=store, **how)
    assert len(fleets) == 2


def test_another_name_is_the_same_task(fleets):
    store, task = Memory(), a_task()
    for name in ("a", "b"):
        grid_search([replace(task, name=name)], GRID[:1], store=store)
    assert len(fleets) == 1


@pytest.mark.parametrize("precision", [None, 3.0])
def test_a_candidate_that_diverges_is_never_chosen(precision):
    wild = SPEC.vary(lengthscale=1e30, precision=1e-30)
    tame = GRID[0].vary(precision=precision)
    with pytest.warns(CaveatWarning, match="diverged"):
        [choice] = grid_search([a_task()], [wild, tame])
    assert choice.spec == tame
    assert choice.scores[wild].log_likelihood == -math.inf


def test_if_all_diverge_the_error_says_so():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaveatWarning)
        with pytest.raises(ParameterError, match="all candidates diverged on a"):
            grid_search([a_task()], [SPEC.vary(learning_rate=1e30)])


def test_no_candidates_are_refused():
    with pytest.raises(ParameterError, match="at least one"):
        grid_search([a_task()], [])


def test_tasks_have_rows_of_inputs_and_of_targets():
    with pytest.raises(ParameterError, match=r"\(rows, targets\)"):
        Task("a", np.zeros((3, 2)), np.zeros(3))


class Forgetful(Memory):
    def put(self, scores):
        pass


def test_a_store_must_keep_what_it_gets():
    with pytest.raises(ParameterError, match="Forgetful has lost"):
        grid_search([a_task()], GRID[:1], store=Forgetful())
