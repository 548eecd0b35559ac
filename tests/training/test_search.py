"""Searches over grids: the best by validation, with no leak, resumed if broken off."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

import caveat.training.search as module
from caveat.errors import CaveatWarning, ParameterError
from caveat.training.ensembles import Candidate, Problem, Settings, fit_ensembles
from caveat.training.folds import contiguous_folds, folds_by_size, last_fifth
from caveat.training.likelihood import best_scale
from caveat.training.search import (
    Memory,
    Task,
    held_out_residuals,
    search,
    validated,
)

SETTINGS = Settings(n_draws=50)
GRID = [
    Candidate(rate, on_features, (8,), epochs=10)
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

    def recording(problems, settings, **how):
        found = fit_ensembles(problems, settings, **how)
        seen.append(list(zip(problems, found, strict=True)))
        return found

    monkeypatch.setattr(module, "fit_ensembles", recording)
    return seen


class TestFolds:
    @pytest.mark.parametrize("n_rows", [5, 7, 60, 1500, 1501, 6999, 7000])
    def test_every_row_is_on_one_side_of_a_fold(self, n_rows):
        for train, valid in folds_by_size(n_rows):
            assert sorted([*train, *valid]) == list(range(n_rows))

    @pytest.mark.parametrize("count", [2, 3, 5])
    def test_folds_hold_out_every_row_once(self, count):
        folds = contiguous_folds(17, count)
        assert sorted(np.concatenate([f.valid for f in folds])) == list(range(17))
        sizes = [len(fold.valid) for fold in folds]
        assert max(sizes) - min(sizes) <= 1

    @pytest.mark.parametrize(
        ("n_rows", "count"), [(100, 5), (1500, 5), (1501, 3), (6999, 3), (7000, 1)]
    )
    def test_their_number_goes_by_size(self, n_rows, count):
        assert len(folds_by_size(n_rows)) == count

    def test_the_last_fifth(self):
        [fold] = last_fifth(11)
        assert fold.valid.tolist() == [9, 10]

    @pytest.mark.parametrize("folds", [folds_by_size, last_fifth])
    def test_too_few_rows_are_refused(self, folds):
        with pytest.raises(ParameterError, match=r"5 rows are needed.*Got 4"):
            folds(4)


def test_choice_is_the_best_of_trainings_one_by_one():
    task = a_task()
    [choice] = search([task], GRID, SETTINGS, n_threads=1)
    expected = {candidate: one_by_one(task, candidate) for candidate in GRID}
    best = max(GRID, key=lambda c: expected[c].log_likelihood)
    assert choice.candidate == best and choice.score == choice.scores[best]
    for candidate, score in expected.items():
        assert_same(choice.scores[candidate], score)


def assert_same(found, expected):
    """But for the rounding of batched products; the scale is found to 0.1 %."""
    assert found.scale == pytest.approx(expected.scale, rel=2e-3)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=1e-5)


def one_by_one(task, candidate):
    """The score of a candidate, restated fold by fold."""
    found = []
    for train, valid in folds_by_size(len(task.x)):
        problem = Problem("p", task.x[train], task.y[train], candidate, seed=task.seed)
        [ensemble] = fit_ensembles([problem], SETTINGS, n_threads=1)
        rows = task.x[valid], task.y[valid]
        found.append(held_out_residuals(ensemble, *rows, SETTINGS.n_draws))
    variance = task.y.var()
    return best_scale(found, low=1e-2 / variance, high=1e6 / variance)


def test_a_given_precision_is_the_one_scored():
    task, candidate = a_task(), replace(GRID[0], precision=3.0)
    [score] = validated([(task, candidate)], SETTINGS)
    free = validated([(task, GRID[0])], SETTINGS)[0]
    assert score.scale == 3.0
    assert score.log_likelihood < free.log_likelihood


def test_noise_head_finds_a_factor():
    [choice] = search([a_task()], GRID[:1], replace(SETTINGS, noise_head=True))
    assert 1e-4 < choice.score.scale < 1e2


def test_all_cells_are_trained_at_once(fleets):
    tasks = [a_task("a"), a_task("b", seed=1)]
    search(tasks, GRID, SETTINGS)
    assert [len(fleet) for fleet in fleets] == [2 * 4 * 5]


def test_a_score_does_not_depend_on_the_other_candidates():
    [together] = search([a_task()], GRID, SETTINGS)
    for candidate in GRID:
        [alone] = search([a_task()], [candidate], SETTINGS)
        assert_same(alone.score, together.scores[candidate])


def test_other_shapes_make_other_fleets(fleets):
    tasks = [a_task("a"), a_task("b", n_inputs=3)]
    grid = [GRID[0], replace(GRID[0], hidden=(4, 4))]
    choices = search(tasks, grid, SETTINGS, folds=last_fifth)
    assert len(fleets) == 4 and len(choices) == 2


def test_large_grids_are_trained_in_parts(fleets, monkeypatch):
    [whole] = search([a_task()], GRID, SETTINGS)
    monkeypatch.setattr(module, "_AT_ONCE", 10)
    [parts] = search([a_task()], GRID, SETTINGS)
    assert [len(fleet) for fleet in fleets] == [20, 10, 10]
    for candidate in GRID:
        assert_same(whole.scores[candidate], parts.scores[candidate])


def test_long_trainings_are_stored_more_often(fleets, monkeypatch):
    monkeypatch.setattr(module, "_LEAST_AT_ONCE", 5)
    monkeypatch.setattr(module, "_WORK", 5 * 48 * 10)
    search([a_task()], GRID, SETTINGS)
    assert [len(fleet) for fleet in fleets] == [5] * 4


def test_a_fold_learns_nothing_of_its_validation_rows(fleets):
    task = a_task()
    [fold] = last_fifth(len(task.x))
    x, y = task.x.copy(), task.y.copy()
    x[fold.valid] = 1e3 * x[fold.valid][::-1] + 7.0
    y[fold.valid] = -1e6
    other = Task("a", x, y)
    for one in (task, other):
        search([one], GRID, SETTINGS, folds=last_fifth)
    trained = [part for fleet in fleets for part in fleet]
    for (_, plain), (_, changed) in zip(trained[:4], trained[4:], strict=True):
        assert torch.equal(plain.trained.parameters, changed.trained.parameters)
        for name in ("x_mean", "x_sd", "y_mean", "y_sd"):
            np.testing.assert_array_equal(
                getattr(plain.scaling, name), getattr(changed.scaling, name)
            )


def test_a_training_row_does_change_the_training(fleets):
    """The test above could fail."""
    task = a_task()
    y = task.y.copy()
    y[0] += 1.0
    for one in (task, Task("a", task.x, y)):
        search([one], GRID[:1], SETTINGS, folds=last_fifth)
    [(_, plain)], [(_, changed)] = fleets
    assert not torch.equal(plain.trained.parameters, changed.trained.parameters)


def test_same_seed_same_choice_other_seed_other_scores():
    tasks = [a_task()]
    first = search(tasks, GRID, SETTINGS)
    assert first == search(tasks, GRID, SETTINGS)
    assert first != search(tasks, GRID, replace(SETTINGS, seed=1))
    other = [replace(tasks[0], seed=1)]
    assert first != search(other, GRID, SETTINGS)


def test_what_is_stored_is_not_trained_again(fleets):
    store, task = Memory(), a_task()
    search([task], GRID[:3], SETTINGS, store=store)
    [resumed] = search([task], GRID, SETTINGS, store=store)
    assert [len(fleet) for fleet in fleets] == [15, 5]
    [whole] = search([task], GRID, SETTINGS)
    for candidate in GRID:
        assert_same(resumed.scores[candidate], whole.scores[candidate])


CHANGES = {
    "rows": lambda task, how: (replace(task, x=task.x + 1e-9), how),
    "order": lambda task, how: (replace(task, x=task.x[::-1], y=task.y[::-1]), how),
    "targets": lambda task, how: (replace(task, y=2 * task.y), how),
    "seed of the task": lambda task, how: (replace(task, seed=9), how),
    "seed": lambda task, how: (task, how | {"settings": replace(SETTINGS, seed=1)}),
    "draws": lambda task, how: (task, how | {"settings": replace(SETTINGS, n_draws=9)}),
    "folds": lambda task, how: (task, how | {"folds": last_fifth}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_scores_of_other_circumstances_are_not_mistaken(fleets, change):
    store, task = Memory(), a_task()
    how = {"settings": SETTINGS, "folds": folds_by_size}
    search([task], GRID[:1], store=store, **how)
    task, how = CHANGES[change](task, how)
    search([task], GRID[:1], store=store, **how)
    assert len(fleets) == 2


def test_another_name_is_the_same_task(fleets):
    store, task = Memory(), a_task()
    for name in ("a", "b"):
        search([replace(task, name=name)], GRID[:1], SETTINGS, store=store)
    assert len(fleets) == 1


@pytest.mark.parametrize("precision", [None, 3.0])
def test_a_candidate_that_diverges_is_never_chosen(precision):
    wild = Candidate(0.3, 0.0, (8,), lengthscale=1e30, epochs=10, precision=1e-30)
    tame = replace(GRID[0], precision=precision)
    with pytest.warns(CaveatWarning, match="diverged"):
        [choice] = search([a_task()], [wild, tame], SETTINGS)
    assert choice.candidate == tame
    assert choice.scores[wild].log_likelihood == -math.inf


def test_if_all_diverge_the_error_says_so():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaveatWarning)
        with pytest.raises(ParameterError, match="all candidates diverged on a"):
            search([a_task()], GRID, replace(SETTINGS, learning_rate=1e30))


def test_no_candidates_are_refused():
    with pytest.raises(ParameterError, match="at least one"):
        search([a_task()], [], SETTINGS)


def test_tasks_have_rows_of_inputs_and_of_targets():
    with pytest.raises(ParameterError, match=r"\(rows, targets\)"):
        Task("a", np.zeros((3, 2)), np.zeros(3))


class Forgetful(Memory):
    def put(self, scores):
        pass


def test_a_store_must_keep_what_it_gets():
    with pytest.raises(ParameterError, match="Forgetful has lost"):
        search([a_task()], GRID[:1], SETTINGS, store=Forgetful())
