"""Thresholds against trying every combination row by row."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caveat.decisions.cascade import search
from caveat.decisions.cascade.search import Trial, surface
from caveat.errors import ParameterError


def some_trial(n_stages, n_rows, seed):
    generator = np.random.default_rng(seed)
    doubt = generator.integers(0, 6, (n_stages - 1, n_rows)) / 6
    loss = generator.integers(0, 2, (n_stages, n_rows)).astype(float)
    return Trial(doubt, loss, generator.random(n_stages))


def naive(trial, thresholds):
    """Loss and cost by walking through the stages with each row."""
    loss = cost = 0.0
    for row in range(trial.n_rows):
        for k, limit in enumerate((*thresholds, np.inf)):
            cost += trial.cost[k]
            if k == len(thresholds) or trial.doubt[k, row] <= limit:
                loss += trial.loss[k, row]
                break
    return loss / trial.n_rows, cost / trial.n_rows


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 4), st.integers(1, 12), st.integers(0, 1000))
def test_surface_is_right_at_every_combination(n_stages, n_rows, seed):
    trial = some_trial(n_stages, n_rows, seed)
    found = surface(trial)
    for index in product(*map(range, found.loss.shape)):
        thresholds = [g[i] for g, i in zip(found.thresholds, index, strict=True)]
        wanted = naive(trial, thresholds)
        assert (found.loss[index], found.cost[index]) == pytest.approx(wanted)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_is_the_best_of_all(seed):
    trial = some_trial(3, 30, seed)
    found = surface(trial)
    every = [naive(trial, t) for t in product(*found.thresholds)]
    budget = float(np.quantile(found.cost, 0.4))
    chosen = found.best(found.loss, found.cost, budget, "budget")
    loss, cost = naive(trial, chosen)
    assert cost <= budget + 1e-9
    allowed = [(a, c) for a, c in every if c <= budget + 1e-9]
    assert loss == pytest.approx(min(a for a, _ in allowed))
    assert cost == pytest.approx(min(c for a, c in allowed if a <= loss + 1e-9))


def test_thresholds_that_no_row_needs_are_on_the_grid():
    found = surface(some_trial(2, 8, 0))
    assert found.thresholds[0][0] == -np.inf
    assert found.thresholds[0][-1] == np.inf


def test_many_rows_are_thinned_to_quantiles(monkeypatch):
    monkeypatch.setattr(search, "_CELLS", 100)
    generator = np.random.default_rng(0)
    doubt, loss = generator.random((2, 5000)), generator.random((3, 5000))
    found = surface(Trial(doubt, loss, np.array([1.0, 2.0, 3.0])))
    assert found.loss.shape == (10, 10)
    assert np.isin(found.thresholds[0][1:-1], doubt[0]).all()
    share = (doubt[0] <= found.thresholds[0][4]).mean()
    assert share == pytest.approx(3 / 7, abs=0.01)


def test_frontier_is_what_nothing_beats():
    trial = some_trial(3, 40, 1)
    found = surface(trial)
    frontier = found.frontier()
    assert (np.diff(frontier.cost) > 0).all()
    assert (np.diff(frontier.risk) < 0).all()
    for thresholds, cost, risk in zip(
        frontier.thresholds, frontier.cost, frontier.risk, strict=True
    ):
        assert naive(trial, thresholds) == pytest.approx((risk, cost))
        better = (found.loss < risk - 1e-9) & (found.cost <= cost + 1e-9)
        assert not better.any()
    assert frontier.risk[-1] == pytest.approx(found.loss.min())


def test_what_cannot_be_kept_is_said():
    found = surface(some_trial(2, 10, 0))
    least = found.cost.min()
    with pytest.raises(ParameterError, match=f"at least {least:.6g}, the least"):
        found.best(found.loss, found.cost, least / 2, "budget")
