"""Paths against one fit per setting."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from caveat.maxent.linear import Design, Features, fit_posterior, make_noise, paths
from caveat.maxent.linear.intercept import UNDROPPED, WITHOUT
from caveat.maxent.linear.paths import mean_path, ratio_path
from tests.maxent.linear.reference import random_data

SETTINGS = [(0.1, 0.5), (0.5, 0.5), (0.5, 0.5), (0.9, 20.0), (0.0, 3.0), (0.3, 1e-4)]


def single_fits(x, y, settings, intercept):
    p = x.shape[1]
    designs = (
        Design(Features(x), make_noise(f, p), l0, intercept) for f, l0 in settings
    )
    return np.column_stack([fit_posterior(design, y).mean for design in designs])


@pytest.mark.parametrize("intercept", [WITHOUT, UNDROPPED])
@pytest.mark.parametrize("shape", [(30, 70), (70, 30)])
@pytest.mark.parametrize("limit", [0, 1000])  # by iteration, by Cholesky
def test_a_path_is_a_fit_per_setting(monkeypatch, intercept, shape, limit):
    monkeypatch.setattr(paths, "EXACT_UP_TO", limit)
    x, y = random_data(*shape, sparse=True)
    x = x.tolil()
    x[:, 3] = 0.0
    x = x.tocsr()
    found = mean_path(Features(x), y, SETTINGS, intercept=intercept, tol=1e-13)
    expected = single_fits(x, y, SETTINGS, intercept)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_guesses_continue_a_smooth_path(monkeypatch):
    monkeypatch.setattr(paths, "EXACT_UP_TO", 0)
    x, y = random_data(60, 200, sparse=True)
    counts = []

    def counting(*arguments, **named):
        found = paths_solve(*arguments, **named)
        counts.append(found.n_iter)
        return found

    paths_solve = paths.solve
    monkeypatch.setattr(paths, "solve", counting)
    settings = [(0.5, l0) for l0 in np.logspace(-1, 0, 20)]
    mean_path(Features(x), y, settings, intercept=WITHOUT, tol=1e-6)
    assert np.mean(counts[5:]) < 0.7 * counts[0]


@pytest.mark.parametrize("intercept", [WITHOUT, UNDROPPED])
@pytest.mark.parametrize("ratio", [0.0, 2.5])
@pytest.mark.parametrize("sparse", [False, True])
def test_one_krylov_space_serves_all_rates(intercept, ratio, sparse):
    x, y = random_data(30, 50, sparse=sparse)
    rates = np.array([0.05, 0.3, 0.5, 0.95])
    found = ratio_path(
        Features(x), y, rates, prior_ratio=ratio, intercept=intercept, tol=1e-12
    )
    settings = [(f, ratio * f * (1 - f)) for f in rates]
    expected = single_fits(x, y, settings, intercept)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
