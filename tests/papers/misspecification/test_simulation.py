"""Data sets with a wrong model, and errors by the formula."""

import math

import numpy as np
import pytest

from caveat.papers.misspecification.simulation import (
    CONDITIONS,
    METHODS,
    N_FEATURES,
    PER_PART,
    STRENGTHS,
    TRUE_PRIOR,
    DataPart,
    draw_sets,
    drop_rates,
    parts,
    run_part,
    squared_errors,
    summarise,
)


def test_strengths_hold_the_true_prior():
    assert STRENGTHS[TRUE_PRIOR] == 1.0
    rates = drop_rates(STRENGTHS)
    np.testing.assert_allclose(20 * rates / (1 - rates), STRENGTHS)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("n_features", N_FEATURES)
def test_covariates_have_rank_ten_and_unit_variance(condition, n_features):
    data = draw_sets(DataPart(condition, n_features, 0, 400))
    x = np.concatenate([data.x, data.x_test], axis=1)
    assert np.linalg.matrix_rank(x[0]) == 10
    squares = np.square(x).mean((1, 2))
    error = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - 1.0) < 5 * error


@pytest.mark.parametrize("condition", CONDITIONS)
def test_response_is_linear_in_the_ten_directions_with_unit_noise(condition):
    """Also after the shift, which is one factor per column for all rows."""
    data = draw_sets(DataPart(condition, 20, 0, 300))
    x = np.concatenate([data.x, data.x_test], axis=1)
    y = np.concatenate([data.y, data.y_test], axis=1)[..., None]
    left = np.linalg.svd(x, full_matrices=False)[0][..., :10]
    residual = y - left @ (left.transpose(0, 2, 1) @ y)
    variance = np.square(residual[..., 0]).sum(1) / 30
    assert abs(variance.mean() - 1.0) < 5 * math.sqrt(2 / 30 / 300)


def test_only_the_shift_makes_columns_of_different_size():
    for condition in CONDITIONS:
        data = draw_sets(DataPart(condition, 20, 0, 100))
        x = np.concatenate([data.x, data.x_test], axis=1)
        sizes = np.square(x).mean(1)
        small = (sizes < 0.05).mean()  # of a squared normal number 0.18 are
        assert (0.1 < small < 0.25) if condition == "covariate shift" else small == 0.0


@pytest.mark.parametrize(
    ("condition", "signal"), [("default", 40), ("junk features", 10)]
)
def test_junk_features_do_not_move_the_response(condition, signal):
    data = draw_sets(DataPart(condition, 40, 0, 1000))
    squares = np.square(data.y).mean(1)
    error = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - signal - 1.0) < 5 * error


def test_errors_are_those_of_the_formula():
    data = draw_sets(DataPart("covariate shift", 40, 1, 3))
    errors = squared_errors(data)
    assert errors.shape == (len(METHODS), len(STRENGTHS), 3)
    k, rate = 10, drop_rates(STRENGTHS)[10]
    for i in range(3):
        x, y = data.x[i], data.y[i]
        ridge = np.linalg.solve(x.T @ x + STRENGTHS[k] * np.eye(40), x.T @ y)
        scatter = x.T @ x
        penalty = 1e-3 * np.eye(40) + rate * (1 - rate) * np.diag(np.diag(scatter))
        precision = penalty + (1 - rate) ** 2 * scatter
        mu = (1 - rate) * np.linalg.solve(precision, x.T @ y)
        for method, weights in enumerate((ridge, (1 - rate) * mu, mu)):
            expected = np.square(data.y_test[i] - data.x_test[i] @ weights).mean()
            assert errors[method, k, i] == pytest.approx(expected, rel=1e-8)


def test_parts_add_up():
    own = [DataPart("default", 10, k, 30) for k in range(3)]
    records = summarise(own, [run_part(part) for part in own])
    errors = np.concatenate([squared_errors(draw_sets(p)) for p in own], axis=2)
    gaps = errors - errors[0, TRUE_PRIOR]
    found = np.array([[r.error, r.error_se, r.gap, r.gap_se] for r in records])
    for column, sample in ((0, errors), (2, gaps)):
        flat = sample.reshape(-1, 90)
        np.testing.assert_allclose(found[:, column], flat.mean(1), atol=1e-10)
        expected = flat.std(1, ddof=1) / math.sqrt(90)
        np.testing.assert_allclose(found[:, column + 1], expected, atol=1e-7)
    assert {r.n_sets for r in records} == {90}


def test_a_panel_is_made_of_parts():
    own = parts("default", 10, PER_PART + 30)
    assert [(part.number, part.n_sets) for part in own] == [(0, PER_PART), (1, 30)]
    assert not np.array_equal(draw_sets(own[0]).x[:30], draw_sets(own[1]).x)
