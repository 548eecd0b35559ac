"""Networks with a noise head in a pool: mixed in where they help, bounded, repeated."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

import caveat
from caveat.estimators import DropoutRegressor
from caveat.estimators.tables import regression
from caveat.estimators.tables.budget import budget_of
from caveat.estimators.tables.columns import Columns
from caveat.estimators.tables.heads import NAME, best_share, fit_heads
from caveat.estimators.tables.nets import Recipe
from caveat.estimators.tables.regression import fit_regression
from caveat.estimators.tables.views import Views
from tests.estimators.tables.data import CHEAP, only_noise

HEADS = tuple(
    Recipe(f"heads {rate}", "encoded", (20,), rate, 1e-6, 1500) for rate in (0.01, 0.1)
)
pytestmark = pytest.mark.filterwarnings("ignore:the networks .* are worse")


def growing_noise(rows, seed=0):
    """Noise that depends on two columns together, which an additive model misses."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(rows, 2))
    sd = np.where(x[:, 0] * x[:, 1] > 0, 1.0, 0.05)
    return x, (x[:, 0] + sd * rng.normal(size=rows))[:, None]


def fitted(x, y, **changes):
    budget = replace(CHEAP, heads=HEADS)
    return fit_regression(
        x, y, budget=budget, weight=np.ones(len(x)), seed=0, progress=False
    )


def density(found, x, y):
    means, tau = found.table.draws(x, n_draws=400, seed=0)
    each = 0.5 * (np.log(tau) - tau * np.square(y - means) - np.log(2 * np.pi))
    return float((logsumexp(each.sum(-1), axis=0) - np.log(400)).mean())


def test_they_help_where_noise_is_not_additive_and_the_held_out_value_is_true():
    x, y = growing_noise(1400)
    with_heads = fitted(x[:700], y[:700])
    without = fit_regression(
        x[:700], y[:700], budget=CHEAP, weight=np.ones(700), seed=0, progress=False
    )
    assert density(with_heads, x[700:], y[700:]) > 0.3 + density(
        without, x[700:], y[700:]
    )
    own = next(c for c in with_heads.candidates if c.name == NAME)
    assert own.weight > 0.5
    assert sum(c.weight for c in with_heads.candidates) == pytest.approx(1, abs=1e-6)
    told, true = with_heads.log_likelihood, density(with_heads, x[700:], y[700:])
    assert told == pytest.approx(true, abs=0.2)  # 700 rows, chosen by the same


def test_noise_leaves_them_out():
    x, y = only_noise(200)
    found = fitted(x, y.reshape(-1, 1))
    assert found.table.heads is None and found.table.head_share == 0.0
    assert not any(c.name == NAME for c in found.candidates)


def test_a_share_must_gain():
    rng = np.random.default_rng(0)
    pool = rng.normal(size=1000)
    weight = np.ones(1000)
    assert best_share(pool, pool, weight) == 0.0
    assert best_share(pool, pool + 1.0, weight) == 1.0
    assert best_share(pool, pool - 1.0, weight) == 0.0
    assert best_share(pool, pool + 0.001, weight) == 0.0  # one nat: not enough
    half = np.where(np.arange(1000) % 2, 5.0, -5.0)
    assert best_share(pool, pool + half, weight) == 0.5


def test_far_rows_are_bounded():
    x, y = growing_noise(300)
    views = Views(Columns.of(x), x)
    budget = replace(CHEAP, heads=HEADS[:1])
    folds = budget.folds(300)
    found = fit_heads(
        budget, views, y, folds=folds, weight=np.ones(300), seed=0, progress=False
    )
    far = Views(Columns.of(x), np.array([[1e9, -1e9], [1e9, 1e9]]))
    means, logs = found.heads.draws(far, n_draws=50, seed=0)
    reach = y.max() - y.min()
    assert np.abs(means).max() <= np.abs(y).max() + 0.5 * reach + 1e-9
    assert np.exp(logs).max() < 4.1 * 1e4


def test_best_saves_loads_and_gives_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "caveat.estimators.regressor.budget_of",
        lambda *a, **k: replace(CHEAP, heads=HEADS),
    )
    x, y = growing_noise(400)
    model = DropoutRegressor(preset="best", random_state=0, n_draws=50).fit(x, y[:, 0])
    assert NAME in model.chosen_
    caveat.save(model, tmp_path / "model")
    same = caveat.load(tmp_path / "model")
    torch.testing.assert_close(
        same.predictive(x[:9]).mean, model.predictive(x[:9]).mean, rtol=0, atol=0
    )
    alone = model.predict(x[3:4])
    np.testing.assert_allclose(alone, model.predict(x)[3:4], rtol=1e-6)


def test_only_best_has_them():
    assert not budget_of("auto", 1000, 5).heads and not budget_of("fast", 1000, 5).heads
    assert budget_of("best", 1000, 5).heads
    assert not budget_of("best", 1000, 5, classes=True).heads
    assert not budget_of("best", 50, 5).heads
    assert regression.NAME_OF_HEADS == NAME
