"""Finite features: right on average, and weight space is function space."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor

from caveat.errors import ParameterError, ShapeError
from caveat.theory.kernels import NetworkKernel, RandomFeatures
from caveat.theory.kernels.naming import NAMED
from tests.statistics import assert_mean_is
from tests.theory.kernels.cases import X, Y

SCALES = {"weight_variance": 0.8, "bias_variance": 0.3}


@pytest.mark.parametrize("name", sorted(NAMED))
def test_features_average_to_the_kernel(name):
    """E83: a mean over K units, of which each is an unbiased estimate."""
    points, n_features = np.vstack([X, Y]), 100_000
    units = RandomFeatures.draw(name, 2, n_features=n_features, seed=3, **SCALES)
    features = np.sqrt(n_features) * units(points)
    products = torch.tensor(features[:, None, :] * features).permute(2, 0, 1)
    expected = torch.tensor(NetworkKernel(name, **SCALES)(points))
    assert_mean_is(products, expected)
    assert_allclose(units.kernel(points), products.mean(0), rtol=1e-12)


def test_weight_space_is_function_space():
    """N(y; 0, Phi Phi' + I/tau) is the evidence of w ~ N(0, I), y ~ N(Phi w, I/tau)."""
    rng, tau, n = np.random.default_rng(0), 4.0, 9
    x, y = rng.standard_normal((n, 2)), rng.standard_normal(n)
    units = RandomFeatures.draw("tanh", 2, n_features=5, seed=1)
    phi = units(x)
    noisy = units.kernel(x) + np.eye(n) / tau
    functions = multivariate_normal(np.zeros(n), noisy).logpdf(y)
    precision = np.eye(5) + tau * phi.T @ phi
    mean = tau * np.linalg.solve(precision, phi.T @ y)
    misfit = tau * np.sum((y - phi @ mean) ** 2) + mean @ mean
    log_det = np.linalg.slogdet(precision)[1]
    weights = -0.5 * (misfit + log_det + n * np.log(2 * np.pi / tau))
    assert functions == pytest.approx(weights, abs=1e-12)
    new = rng.standard_normal((3, 2))
    assert_allclose(
        units.kernel(new, x) @ np.linalg.solve(noisy, y), units(new) @ mean, rtol=1e-9
    )


def test_many_features_predict_as_the_process():
    rng = np.random.default_rng(0)
    x, new = rng.standard_normal((12, 2)), rng.standard_normal((4, 2))
    y = np.sin(x[:, 0])
    process = GaussianProcessRegressor(NetworkKernel("relu"), alpha=0.1, optimizer=None)
    exact = process.fit(x, y).predict(new)
    units = RandomFeatures.draw("relu", 2, n_features=200_000, seed=0)
    weights = np.linalg.solve(units.kernel(x) + 0.1 * np.eye(12), y)
    assert_allclose(units.kernel(new, x) @ weights, exact, atol=0.03)


def test_seeds():
    draw = {"nonlinearity": "relu", "n_inputs": 2, "n_features": 3}
    first, again = (RandomFeatures.draw(**draw, seed=1)(X) for _ in range(2))
    assert_allclose(first, again, rtol=0)
    other = RandomFeatures.draw(**draw, seed=torch.Generator().manual_seed(1))(X)
    assert not np.allclose(first, other)


def test_bad_input():
    units = RandomFeatures.draw("relu", 2, n_features=3, seed=0)
    with pytest.raises(ShapeError, match=r"\(points, 2\)"):
        units([[1.0, 2.0, 3.0]])
    with pytest.raises(ParameterError, match="n_features"):
        RandomFeatures.draw("relu", 2, n_features=0)
    with pytest.raises(ParameterError, match="weight_variance"):
        RandomFeatures.draw("relu", 2, n_features=1, weight_variance=0.0)
