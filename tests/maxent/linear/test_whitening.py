"""Groups dropped together, wide and narrow, against the dense formula."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from caveat.errors import ParameterError
from caveat.maxent.linear import Design, Features, fit_posterior, make_noise
from caveat.maxent.linear.intercept import DROP_TO_MEAN, UNDROPPED, WITHOUT
from tests.maxent.linear.reference import naive_posterior, random_data, second_moment

GROUPS = {
    "one": np.zeros(12, dtype=int),  # wide for 5 rows
    "mixed": np.array([0, 1, 0, 2, 0, 1, 0, 2, 0, 0, 0, 3]),
    "each": np.arange(12),
}


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("n", [5, 30])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["bernoulli", "gaussian"])
def test_groups_restated(name, n, sparse, kind):
    x, y = random_data(n, 12, sparse=sparse)
    noise = make_noise(0.3, 12, groups=GROUPS[name], kind=kind)
    dense = x.toarray() if sparse else x
    precision, mean, misfit = naive_posterior(dense, y, noise, 0.6)
    design = Design(Features(x), noise, 0.6)
    posterior = fit_posterior(design, y)
    assert_allclose(posterior.mean, mean, rtol=1e-9, atol=1e-11)
    assert_allclose(posterior.misfit, misfit, rtol=1e-9)
    expected = np.linalg.inv(precision) * posterior.noise_variance
    assert_allclose(posterior.covariance(), expected, rtol=1e-8, atol=1e-11)
    log_det = design.whitening.log_det + design.factor.log_det
    assert_allclose(log_det, np.linalg.slogdet(precision)[1], rtol=1e-10)


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("intercept", [UNDROPPED, DROP_TO_MEAN])
@pytest.mark.parametrize("sparse", [False, True])
def test_groups_with_an_intercept(name, intercept, sparse):
    x, y = random_data(6, 12, sparse=sparse)
    noise = make_noise(0.3, 12, groups=GROUPS[name])
    posterior = fit_posterior(Design(Features(x), noise, 0.6, intercept), y)
    dense = x.toarray() if sparse else x
    centred = dense - dense.mean(0)
    spread = second_moment(noise) - np.outer(noise.mean, noise.mean)
    squares = centred if intercept.to_mean else dense
    precision = 0.6 * np.eye(12) + spread * (squares.T @ squares)
    precision += np.outer(noise.mean, noise.mean) * (centred.T @ centred)
    expected = np.linalg.solve(precision, noise.mean * (centred.T @ y))
    assert_allclose(posterior.mean, expected, rtol=1e-9, atol=1e-11)


def test_one_group_of_all_features_is_ridge_regression():
    x, y = random_data(20, 4)
    noise = make_noise(0.3, 4, groups=[1, 1, 1, 1])
    posterior = fit_posterior(Design(Features(x), noise, 0.5), y)
    precision = 0.5 * np.eye(4) + 0.7 * x.T @ x
    assert_allclose(posterior.mean, 0.7 * np.linalg.solve(precision, x.T @ y))


def test_a_column_of_zeros_has_weight_zero():
    x, y = random_data(9, 4)
    x[:, 2] = 0.0
    for precision in (0.0, 0.5):
        for matrix in (x, sp.csr_array(x)):
            design = Design(Features(matrix), make_noise(0.3, 4), precision)
            posterior = fit_posterior(design, y)
            assert posterior.mean[2] == 0.0
            rest = Design(Features(np.delete(x, 2, 1)), make_noise(0.3, 3), precision)
            others = fit_posterior(rest, y)
            assert_allclose(np.delete(posterior.mean, 2), others.mean)
    prior_only = posterior.noise_variance / 0.5
    assert_allclose(posterior.covariance([2]), [[prior_only]])


def test_a_column_of_zeros_without_a_prior_has_no_covariance():
    x, y = random_data(9, 3)
    x[:, 1] = 0.0
    posterior = fit_posterior(Design(Features(x), make_noise(0.3, 3), 0.0), y)
    assert np.isnan(posterior.covariance()[1]).all()
    assert np.isfinite(posterior.covariance([0, 2])).all()


def test_dependent_features_in_a_group_need_a_prior():
    x, y = random_data(9, 3)
    x[:, 1] = x[:, 0]
    noise = make_noise(0.3, 3, groups=[0, 0, 1])
    with pytest.raises(ParameterError, match="linearly independent"):
        fit_posterior(Design(Features(x), noise, 0.0, WITHOUT), y)
