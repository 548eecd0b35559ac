"""Pools for regression: never worse than simple models, calibrated, robust."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from caveat.errors import CaveatWarning
from caveat.estimators.tables.budget import Budget
from caveat.estimators.tables.nets import Nets
from caveat.estimators.tables.regression import (
    CONSTANT,
    _smooth,
    _steps,
    fit_regression,
)
from caveat.estimators.tables.ridge import Ridge
from caveat.predictive import GaussianPredictive
from tests.estimators.tables.data import CHEAP, a_line, only_noise

# On noise, networks are worse than a constant, and it is said.
pytestmark = pytest.mark.filterwarnings("ignore:the networks .* are worse")


def fitted(x, y, **settings):
    how = {"budget": CHEAP, "weight": np.ones(len(x)), "seed": 0, "progress": False}
    return fit_regression(x, y.reshape(len(x), -1), **(how | settings))


def predictive(table, x, n_draws=200):
    means, precisions = table.draws(x, n_draws=n_draws, seed=0)
    return GaussianPredictive.from_draws(
        torch.from_numpy(means), precision=torch.from_numpy(precisions)
    )


def log_likelihood(found, x, y):
    return float(
        predictive(found.table, x).log_prob(torch.from_numpy(y)[:, None]).mean()
    )


def test_noise_leaves_the_constant():
    x, y = only_noise(250)
    found = fitted(x[:150], y[:150])
    best = max(found.candidates, key=lambda c: c.weight)
    assert best.name == CONSTANT and best.weight > 0.8
    constant = -0.5 * np.log(2 * np.pi) - 0.5 * np.square(y[150:]).mean()
    assert log_likelihood(found, x[150:], y[150:]) > constant - 0.03


def test_a_line_is_found_and_its_noise():
    x, y = a_line(400, noise=0.5)
    found = fitted(x[:300], y[:300])
    own = predictive(found.table, x[300:])
    error = own.mean[:, 0].numpy() - y[300:]
    assert np.sqrt(np.square(error).mean()) < 0.6
    assert own.std.mean() == pytest.approx(0.5, rel=0.2)


def test_networks_are_used_where_lines_bend():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(500, 2))
    y = x[:, 0] * x[:, 1] + 0.1 * rng.normal(size=500)
    found = fitted(x[:400], y[:400])
    nets = sum(c.weight for c in found.candidates if "networks" in c.name)
    assert nets > 0.9
    by_name = {c.name: c.log_likelihood for c in found.candidates}
    assert log_likelihood(found, x[400:], y[400:]) > by_name["additive"] + 0.3
    assert found.log_likelihood > by_name["additive"] + 0.3


def test_the_noise_may_depend_on_the_row():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(600, 1))
    y = np.exp(1.5 * x[:, 0]) * rng.normal(size=600)
    table = fitted(x, y).table
    std = predictive(table, np.array([[-0.9], [0.9]])).std[:, 0]
    assert std[1] > 5 * std[0]
    assert table.laws[0].strength > 0.5


@pytest.mark.parametrize("wrong", ["inputs", "targets"])
def test_three_mistyped_values_change_little(wrong):
    x, y = a_line(400, noise=0.5)
    clean = log_likelihood(fitted(x[:300], y[:300]), x[300:], y[300:])
    train_x, train_y = x[:300].copy(), y[:300].copy()
    if wrong == "inputs":
        train_x[:3, 2] = 1000 * train_x[:3, 2] + 1000
    else:
        train_y[:3] = 1000 * train_y[:3] + 1000
    found = fitted(train_x, train_y)
    assert log_likelihood(found, x[300:], y[300:]) > clean - 0.3
    far = predictive(found.table, np.array([[1e6, 0.0, 0.0]]))
    assert abs(float(far.mean)) < 10 * np.abs(y).max()


def test_intervals_hold_what_they_say():
    rng = np.random.default_rng(1)
    x, y = a_line(1300, noise=0.0)
    y = y + rng.standard_t(3, size=1300)
    own = predictive(fitted(x[:300], y[:300]).table, x[300:])
    inside = own.inside(torch.from_numpy(y[300:])[:, None], 0.9)
    assert 0.85 < float(inside.double().mean()) < 0.95


def test_the_mean_of_many_zeros_is_a_mean():
    """Pulling in far errors alone would make it the median, which is 0."""
    rng = np.random.default_rng(0)
    n, x = 500, rng.normal(size=(2500, 2))
    y = np.where(rng.random(2500) < 0.7, 0.0, rng.exponential(5.0, 2500))
    own = predictive(fitted(x[:n], y[:n]).table, x[n:])
    error = math.sqrt(y.var() / n + y.var() / 2000)  # of both means
    assert float(own.mean.mean()) == pytest.approx(y[n:].mean(), abs=4 * error)
    lower, upper = (end[:, 0].numpy() for end in own.interval(0.9))
    share = ((lower <= y[n:]) & (y[n:] <= upper)).mean()
    assert share > 0.9 - 4 * math.sqrt(0.09 / n)


def test_a_line_without_noise_has_next_to_none():
    x, y = a_line(200, noise=0.0)
    own = predictive(fitted(x[:100], y[:100]).table, x[100:])
    assert (own.mean[:, 0].numpy() - y[100:]).std() < 1e-5 * y.std()
    assert float(own.std.mean()) < 1e-4 * y.std()


def test_to_how_many_decimals_y_is_rounded():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(30, 1))
    columns = (np.rint(y), y.round(2), y, 1e6 * y.round(4), 1e300 * y)
    np.testing.assert_array_equal(_steps(np.hstack(columns)), [1, 0.01, 0, 1, 0])


def test_outputs_have_units_and_noise_of_their_own():
    x, y = a_line(200)
    both = np.column_stack([y, 1000 + 100 * np.roll(y, 1)])
    found = fitted(x, both)
    own = predictive(found.table, x[:5])
    assert own.mean.shape == (5, 2)
    assert (own.std[:, 1] > 50 * own.std[:, 0]).all()
    assert len(found.table.laws) == 2


@pytest.mark.parametrize("n_rows", [2, 3, 4, 5, 7, 12, 30])
def test_few_rows(n_rows):
    x, y = a_line(n_rows)
    found = fitted(x, y)
    own = predictive(found.table, x)
    assert bool(own.mean.isfinite().all()) and bool((own.std > 0).all())
    assert float(own.std.max()) < 20 * (y.std() + 1)


def test_weights_say_which_rows_count():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    y = np.where(np.arange(300) % 2, 5.0, -5.0) + 0.1 * rng.normal(size=300)
    weight = np.where(np.arange(300) % 2, 1.99, 0.01)
    own = predictive(fitted(x, y, weight=weight).table, x[:9])
    assert (own.mean > 4.0).all()


def test_a_recipe_that_is_worse_than_a_constant_is_thrown_out(monkeypatch):
    x, y = a_line(80)
    true = Nets.draws
    monkeypatch.setattr(Nets, "draws", lambda *a, **k: true(*a, **k) + 100.0)
    with pytest.warns(CaveatWarning, match="worse than a constant"):
        found = fitted(x, y)
    assert not any("networks" in c.name for c in found.candidates)


def test_the_same_seed_the_same_pool_and_rows_do_not_depend_on_others():
    x, y = a_line(90)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = fitted(x, y).table, fitted(x, y).table
    whole, _ = first.draws(x, n_draws=50, seed=3)
    again, _ = second.draws(x, n_draws=50, seed=3)
    assert np.array_equal(whole, again)
    part, _ = first.draws(x[7:9], n_draws=50, seed=3)
    assert np.allclose(part, whole[:, 7:9], rtol=0, atol=1e-9)


def test_a_mistyped_input_does_not_carry_the_mean_away():
    rng = np.random.default_rng(0)
    space, age = rng.lognormal(4.3, 0.4, size=400), rng.uniform(0, 90, 400)
    y = 40 * space * (1 - 0.004 * age) + 400 * rng.normal(size=400)
    x = np.column_stack([space, age])
    x[:2, 0] *= 1000
    found = fitted(x[:300], y[:300])
    typed = x[300:] * [1000, 1]
    mean = predictive(found.table, typed).mean.squeeze(-1).numpy()
    assert np.abs(mean - y.mean()).max() < 10 * (y.max() - y.min())


def test_beyond_the_bounds_the_draws_go_on_and_the_mean_does_not():
    x, y = a_line(60)
    found = fitted(x, y, budget=Budget(()))
    columns = found.table.columns
    rows = np.zeros((3, 3))
    rows[:, 2] = columns.high[2] + np.array([0.0, 5.0, 10.0])
    own = predictive(found.table, rows)
    mean, std = own.mean.squeeze(-1).numpy(), own.std.squeeze(-1).numpy()
    assert np.allclose(mean, mean[0], atol=1e-6)
    truth = 3.0 * (rows[:, 2] - rows[0, 2])  # of the line, from the bound on
    assert np.allclose(std[1:], np.hypot(truth[1:], std[0]), rtol=0.15)
    alone, _ = found.table.draws(rows[:1], n_draws=50, seed=0)
    beside, _ = found.table.draws(rows, n_draws=50, seed=0)
    assert np.allclose(alone, beside[:, :1], atol=1e-9)


def test_beyond_the_range_draws_go_on_in_two_ways_where_these_differ():
    x = np.random.default_rng(0).uniform(size=(300, 1))
    noise = 0.1 * np.random.default_rng(1).normal(size=300)
    rows = np.linspace(1.0, 1.5, 21)[:, None]
    truth = np.abs(8 * rows[:, 0] - 4)
    bend = fitted(x, np.abs(8 * x[:, 0] - 4) + noise).table
    own = predictive(bend, rows)
    assert (np.diff(own.std.squeeze(-1)) > 0).all()
    low, high = (end.squeeze(-1).numpy() for end in own.interval(0.9))
    assert ((low < truth) & (truth < high)).mean() > 0.8
    straight = Ridge.fit(bend.columns.plain(x), 4 * x)
    line = replace(bend, names=("linear",), parts=(straight,), shares=np.ones((1, 1)))
    assert np.abs(line._beyond(rows[:-1], 20, 0)).max() < 1e-9  # up to the bound
    assert np.abs(bend._beyond(rows, 20, 0)).max() > 1e-2


def test_a_mixture_of_draws_has_no_gaps():
    """Narrow draws that lie apart keep their mean and variance, and become wider."""
    rng = np.random.default_rng(0)
    means, tau = rng.normal(size=(50, 2, 1)), np.full((50, 2, 1), 1e6)
    tau[:, 1] = 1.0  # as wide as they are apart: left as they are
    found, wider = _smooth(means.copy(), tau.copy())
    assert np.array_equal(found[:, 1], means[:, 1])
    assert np.array_equal(wider[:, 1], tau[:, 1])
    assert np.allclose(found.mean(0), means.mean(0))
    before, after = means.var(0) + 1.0 / tau[0], found.var(0) + 1.0 / wider[0]
    assert np.allclose(before, after)
    assert np.allclose(1.0 / wider[0, 0], 0.25 * after[0])


def test_a_constant_target_has_units_of_its_own():
    x, _ = a_line(30)
    each = [
        predictive(fitted(x, np.full(30, c), budget=Budget(())).table, x[:1])
        for c in (2.0, 2e-9)
    ]
    ratio = float(each[0].std / each[1].std)
    assert ratio == pytest.approx(1e9, rel=1e-6)


def test_a_target_that_is_almost_constant_may_be_anything_now_and_then():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2300, 3))
    y = np.where(rng.random(2300) < 0.02, 10.0 * rng.normal(size=2300), 0.0)
    found = fitted(x[:300], y[:300])
    constant = -0.5 * math.log(2 * math.pi * y.var()) - 0.5
    value = log_likelihood(found, x[300:], y[300:])
    assert value > constant
    # of more than a dozen rows, so the two agree roughly
    assert value == pytest.approx(found.log_likelihood, abs=1.0)
    std = predictive(found.table, x[300:]).std.mean()
    assert float(std) == pytest.approx(y.std(), rel=0.6)
