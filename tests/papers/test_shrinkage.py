"""Figure 1a of paper 002 on the real data: identities, limits, and the page."""

from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from caveat.cli import main
from caveat.papers.records import read_records
from caveat.papers.shrinkage import (
    METHODS,
    RATES_QUICK,
    SCALINGS,
    AminoAcids,
    Weight,
    path,
    path_of,
    positive_from,
)


@pytest.fixture
def data(real_data):
    return AminoAcids.load()


@pytest.fixture
def weights(real_data):
    jobs = product(SCALINGS, METHODS)
    return [w for s, method in jobs for w in path_of(method, s, RATES_QUICK)]


def values(points, name="weight"):
    return np.array([[getattr(w, name) for w in points[k]] for k in sorted(points)])


def test_all_covariates_correlate_positively_once_one_is_flipped(data):
    assert data.x.shape == (19, 7)
    expected = [np.corrcoef(column, data.y)[0, 1] for column in data.x.T]
    np.testing.assert_allclose(data.correlations, expected, rtol=1e-10)
    assert (data.correlations > 0.2).all()


def test_dropout_does_not_see_the_scale_of_columns(weights):
    scaled, raw = (
        values(path(weights, s, "dropout")) for s in ("standardised", "centred")
    )
    np.testing.assert_allclose(scaled, raw, rtol=1e-6)


def test_predicting_weights_are_ridge_on_standardised_columns(weights):
    """The trap of the figure: lambda0 = n f / (1 - f)."""
    dropout = path(weights, "standardised", "dropout")
    ridge = path(weights, "standardised", "ridge")
    for position, own in ridge.items():
        assert own[0].strength == pytest.approx(19 * position / (1 - position))
    np.testing.assert_allclose(values(dropout, "effective"), values(ridge), rtol=1e-6)


def test_weights_are_those_of_equation_14(data, weights):
    x = data.scaled("standardised")
    for rate, own in path(weights, "standardised", "dropout").items():
        keep = 1.0 - rate
        scatter = x.T @ x
        precision = rate * keep * np.diag(np.diag(scatter)) + keep**2 * scatter
        expected = keep * np.linalg.solve(precision, x.T @ data.y)
        np.testing.assert_allclose([w.weight for w in own], expected, rtol=1e-6)


def test_dropout_tends_to_each_column_alone(data, weights):
    last = path(weights, "standardised", "dropout")[0.999]
    alone = [column @ data.y / (column @ column) for column in data.x.T]
    np.testing.assert_allclose(data.alone, alone * data.x.std(0), rtol=1e-10)
    np.testing.assert_allclose([w.weight for w in last], data.alone, rtol=0.01)


@pytest.mark.parametrize("scaling", ["standardised", "centred"])
def test_lasso_is_that_of_coordinate_descent(scaling, data, weights):
    x = data.scaled(scaling)
    for position, own in path(weights, scaling, "lasso").items():
        if not 0.01 < position < 1.0:
            continue
        model = Lasso(own[0].strength, tol=1e-9, max_iter=10**6).fit(x, data.y)
        found = [w.weight for w in own]
        np.testing.assert_allclose(found, model.coef_ * x.std(0), atol=1e-3)


def test_positive_from_is_where_the_last_stretch_begins():
    def points(*rows):
        return {
            k / 4: [Weight("s", "m", k, k / 4, "x", w, w, 0.0) for w in row]
            for k, row in enumerate(rows)
        }

    found = positive_from(points((1, 1), (1, -1), (1, 1), (2, 2)))
    assert found is not None and found.position == 0.5
    assert positive_from(points((1, 1), (1, 0))) is None


def test_command_line(tmp_path, real_data):
    assert main(["reproduce", "shrinkage", "--quick", "--output", str(tmp_path)]) == 0
    (page,) = (path.read_text() for path in tmp_path.glob("*.md"))
    assert "dropout, any scaling: from f = 0.7 on" in page
    assert "Ridge is ever all positive: yes, and the lasso: no" in page
    assert (tmp_path / "shrinkage_quick.png").stat().st_size > 10_000
    stored = read_records(tmp_path / "shrinkage_quick.csv", Weight)
    assert len(stored) == 2 * 3 * len(RATES_QUICK) * 7
