"""Ridge by evidence: against scikit-learn, and where that does not go."""

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge
from sklearn.preprocessing import StandardScaler

from caveat.estimators.tables.ridge import SPARSE, Ridge
from tests.estimators.tables.data import a_line, only_noise


def test_it_is_bayesian_ridge():
    x, y = a_line()
    z = StandardScaler().fit_transform(x)
    theirs = BayesianRidge().fit(z, y)
    ours = Ridge.fit(x, y[:, None])
    assert np.allclose(ours.predict(x)[:, 0], theirs.predict(z), atol=5e-3)
    _, std = theirs.predict(z, return_std=True)
    theirs_std = np.sqrt(std**2 - 1 / theirs.alpha_)
    draws = ours.draws(x, 4000, np.random.default_rng(0))[..., 0]
    # theirs leaves out the error of the intercept
    own = np.sqrt(draws.var(0) - ours.level[0] ** 2)
    assert np.allclose(own, theirs_std, rtol=0.12)


def test_weights_are_repeated_rows():
    x, y = a_line(60)
    count = np.random.default_rng(1).integers(1, 4, 60)
    weighted = Ridge.fit(x, y[:, None], weight=count.astype(float))
    repeated = Ridge.fit(np.repeat(x, count, 0), np.repeat(y, count)[:, None])
    assert np.allclose(weighted.predict(x), repeated.predict(x), atol=0.02)


def test_a_robust_line_does_not_follow_outliers():
    x, y = a_line(200, noise=0.1)
    y[:10] += 100.0
    plain = Ridge.fit(x, y[:, None]).predict(x)[10:, 0] - y[10:]
    robust = Ridge.fit(x, y[:, None], kind="robust").predict(x)[10:, 0] - y[10:]
    assert np.abs(robust).mean() < 0.1 * np.abs(plain).mean()


def test_sparse_weights_are_found_among_many_columns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 300))
    y = (3 * x[:, 0] - 2 * x[:, 1])[:, None] + 0.3 * rng.normal(size=(80, 1))
    new = rng.normal(size=(200, 300))
    truth = (3 * new[:, 0] - 2 * new[:, 1])[:, None]
    errors = {
        kind: np.square(Ridge.fit(x, y, kind=kind).predict(new) - truth).mean()
        for kind in ("plain", SPARSE)
    }
    assert errors[SPARSE] < 0.3 < 3.0 < errors["plain"]


@pytest.mark.parametrize("kind", ["plain", "robust", SPARSE])
def test_edges(kind):
    x, y = only_noise(6, 20)
    for target in (y[:, None], np.zeros((6, 1)), np.column_stack([y, 2 * y])):
        found = Ridge.fit(x, target, kind=kind)
        assert np.isfinite(found.draws(x, 3, np.random.default_rng(0))).all()
    same = Ridge.fit(np.ones((6, 2)), y[:, None], kind=kind)
    assert np.isfinite(same.predict(x[:, :2])).all()


def test_noise_is_shrunk_to_the_mean():
    x, y = only_noise(300, 10)
    found = Ridge.fit(x, y[:, None]).predict(x)[:, 0]
    assert found.std() < 0.15 * y.std()


def test_draws_of_a_row_do_not_know_the_others():
    """A row outside the span of the columns changes nothing for those inside."""
    x, y = a_line(40)
    doubled = np.hstack([x, x[:, :1]])
    model = Ridge.fit(doubled, y[:, None])
    inside = doubled[:3]
    inside[:, -1] += 1e-9  # rounding, as good as inside
    outside = doubled[:1].copy()
    outside[0, -1] += 5.0
    alone = model.draws(inside, 50, np.random.default_rng(0))
    beside = model.draws(np.vstack([inside, outside]), 50, np.random.default_rng(0))
    np.testing.assert_allclose(beside[:, :3], alone, rtol=0, atol=1e-12)
    assert beside[:, 3].std() > 0
