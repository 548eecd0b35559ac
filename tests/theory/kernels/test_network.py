"""NetworkKernel as a kernel of scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import ortho_group
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.theory import NetworkKernel
from caveat.theory.kernels import LeakyRelu, Masks
from caveat.theory.kernels.naming import NAMED

POINTS = np.random.default_rng(0).standard_normal((6, 2))
FEW = np.vstack([POINTS[:4], POINTS[:1] + 1e-3])

KERNELS = {
    "deep relu": NetworkKernel("relu", depth=4, bias_variance=0.3),
    "no bias": NetworkKernel("relu", depth=2, bias_variance=0.0),
    "fixed": NetworkKernel("erf", depth=2, weight_variance_bounds="fixed"),
    "nothing free": NetworkKernel(
        "erf", weight_variance_bounds="fixed", bias_variance_bounds="fixed"
    ),
    "output": NetworkKernel(["tanh", "relu", "identity"], fan_in=True),
    "per layer": NetworkKernel(
        ("gelu", "erf", "identity"),
        weight_variance=(1.5, 0.7, 2.0),
        bias_variance=[0.2, 0.1, 0.4],
    ),
    "masks": NetworkKernel(
        ["relu", "relu", "identity"],
        weight_variance=1.7,
        masks=Masks((0.9, 0.8), shared=False),
    ),
    "shared masks": NetworkKernel("sin", depth=3, masks=Masks(0.6, inverted=False)),
}
SINGLE = {
    name: NetworkKernel(name, depth=depth, weight_variance=1.3, bias_variance=0.4)
    for name in NAMED
    for depth in (2,)
}
EVERY = pytest.mark.parametrize(
    "kernel", [*KERNELS.values(), *SINGLE.values()], ids=[*KERNELS, *SINGLE]
)


def numerical_gradient(kernel, x, step=1e-4):
    columns = []
    for number in range(kernel.n_dims):
        shift = np.zeros(kernel.n_dims)
        shift[number] = step

        def at(factor, shift=shift):
            return kernel.clone_with_theta(kernel.theta + factor * shift)(x)

        near, far = at(1) - at(-1), at(2) - at(-2)
        columns.append((8 * near - far) / (12 * step))
    return np.stack(columns, -1) if columns else np.zeros((len(x), len(x), 0))


# The contract of scikit-learn


@EVERY
def test_gradient_is_the_derivative(kernel):
    matrix, gradient = kernel(FEW, eval_gradient=True)
    assert gradient.shape == (len(FEW), len(FEW), kernel.n_dims)
    assert_allclose(matrix, kernel(FEW), rtol=1e-13, atol=1e-14)
    scale = max(1.0, np.abs(matrix).max())
    assert_allclose(gradient, numerical_gradient(kernel, FEW), atol=3e-9 * scale)


@EVERY
def test_diagonal_and_symmetry(kernel):
    matrix = kernel(POINTS)
    assert_allclose(np.diag(matrix), kernel.diag(POINTS), rtol=1e-13)
    assert_allclose(matrix, matrix.T, rtol=1e-12, atol=1e-14)
    other = kernel(POINTS, POINTS[:2])
    away = ~np.eye(6, 2, dtype=bool)
    assert_allclose(other[away], matrix[:, :2][away], rtol=1e-12, atol=1e-14)


@EVERY
def test_clones_are_equal(kernel):
    twin = clone(kernel)
    assert twin == kernel
    assert_allclose(twin.theta, kernel.theta)
    moved = kernel.clone_with_theta(kernel.theta + 0.1)
    assert (moved == kernel) is (kernel.n_dims == 0)
    assert kernel.bounds.shape[0] == kernel.n_dims
    assert repr(twin) == repr(kernel)


def test_hyperparameters_in_the_order_of_scikit_learn():
    kernel = NetworkKernel("relu", weight_variance=3.0, bias_variance=2.0)
    assert_allclose(kernel.theta, np.log([2.0, 3.0]))
    assert KERNELS["no bias"].n_dims == 1
    assert KERNELS["per layer"].n_dims == 6
    assert not kernel.is_stationary()


def test_sums_and_products():
    relu, erf = NetworkKernel("relu"), NetworkKernel("erf", bias_variance=0.1)
    both = 2.0 * relu * RBF(0.5) + erf + WhiteKernel(0.1)
    expected = 2 * relu(POINTS) * RBF(0.5)(POINTS) + erf(POINTS) + 0.1 * np.eye(6)
    assert_allclose(both(POINTS), expected)
    assert_allclose(both.diag(POINTS), np.diag(expected))
    _, gradient = both(FEW, eval_gradient=True)
    assert_allclose(gradient, numerical_gradient(both, FEW), atol=1e-8)


@pytest.mark.parametrize("name", ["relu", "tanh", "cos"])
def test_fit_recovers_the_prior(name):
    """y is drawn from a kernel of weight variance 2; the search starts at 0.3."""
    settings = {"bias_variance_bounds": "fixed", "weight_variance_bounds": (0.02, 50)}
    truth, start = (
        NetworkKernel(name, weight_variance=w, **settings) for w in (2.0, 0.3)
    )
    x = np.linspace(-3, 3, 60)[:, None]
    noise = 1e-3 * np.eye(60)
    y = np.random.default_rng(2).multivariate_normal(np.zeros(60), truth(x) + noise)
    process = GaussianProcessRegressor(start, alpha=1e-3).fit(x, y)
    best = process.log_marginal_likelihood_value_
    assert best > process.log_marginal_likelihood(start.theta) + 1
    assert best >= process.log_marginal_likelihood(truth.theta)
    assert 0.4 < process.kernel_.weight_variance < 10


def test_gaussian_process_with_depth():
    kernel = NetworkKernel("relu", depth=4, bias_variance=0.0)
    process = GaussianProcessRegressor(kernel, alpha=0.1).fit(POINTS, POINTS[:, 0])
    assert process.kernel_.depth == 4
    assert process.kernel_.bias_variance == 0.0
    assert process.kernel_.weight_variance != kernel.weight_variance


def test_own_masks_are_noise_of_the_function():
    """K(X) is within one pass of each row, K(X, X) between two."""
    kernel = NetworkKernel(["relu", "identity"], masks=Masks(0.5, shared=False))
    within, between = kernel(POINTS), kernel(POINTS, POINTS)
    assert (np.diag(within) > np.diag(between)).all()
    away = ~np.eye(6, dtype=bool)
    assert_allclose(within[away], between[away])


# Properties


@settings(deadline=None, max_examples=40)
@given(
    name=st.sampled_from(sorted(NAMED)),
    depth=st.integers(1, 3),
    seed=st.integers(0, 1000),
    weight=st.sampled_from([0.1, 1.0, 2.0]),
    bias=st.sampled_from([0.0, 0.5]),
    keep=st.sampled_from([1.0, 0.7]),
    shared=st.booleans(),
)
def test_gram_matrices_have_no_negative_eigenvalues(
    name, depth, seed, weight, bias, keep, shared
):
    if name == "square" and depth > 2:
        depth = 2
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((8, 2))
    x = np.vstack([x, x[:2], x[:2] * (1 + 1e-8), np.zeros((1, 2))])
    kernel = NetworkKernel(
        name,
        depth=depth,
        weight_variance=weight,
        bias_variance=bias,
        masks=Masks(keep, shared=shared),
        fan_in=True,
    )
    matrix = kernel(x)
    assert np.isfinite(matrix).all()
    assert np.linalg.eigvalsh(matrix).min() > -1e-9 * np.trace(matrix) - 1e-12


@pytest.mark.parametrize("name", sorted(NAMED))
def test_rotations_do_not_matter(name):
    turn = ortho_group.rvs(2, random_state=1)
    kernel = NetworkKernel(name, depth=2)
    assert_allclose(kernel(POINTS @ turn), kernel(POINTS), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", sorted(NAMED))
def test_weight_variance_is_a_length_scale(name):
    """Inputs over l with unit weights are inputs with weights of variance 1/l²."""
    near = NetworkKernel(name, weight_variance=0.7**-2)(POINTS)
    assert_allclose(near, NetworkKernel(name)(POINTS / 0.7), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tanh", lambda z: -np.tanh(z)),
        ("sin", lambda z: np.sin(-z)),
    ],
)
def test_several_nonlinearities_have_one_kernel(one, other):
    settings = {"weight_variance": 1.3, "bias_variance": 0.4}
    found = [NetworkKernel(sigma, **settings)(POINTS) for sigma in (one, other)]
    assert_allclose(*found, rtol=1e-10)


def test_fan_in_divides_the_first_layer_only():
    scaled = NetworkKernel("erf", depth=2, weight_variance=3.0, fan_in=True)
    by_hand = NetworkKernel(["erf", "erf"], weight_variance=(1.5, 3.0))
    assert_allclose(scaled(POINTS), by_hand(POINTS))


# Bad input


def test_bad_parameters():
    with pytest.raises(ParameterError, match="leave Y out"):
        NetworkKernel()(POINTS, POINTS, eval_gradient=True)
    with pytest.raises(ParameterError, match="Got 2 of them with depth=3"):
        NetworkKernel(["relu", "erf"], depth=3)(POINTS)
    with pytest.raises(ParameterError, match="Got 0 of them"):
        NetworkKernel([])(POINTS)
    with pytest.raises(ShapeError, match="each of 2 layers"):
        NetworkKernel("relu", depth=2, weight_variance=(1, 1, 1))(POINTS)
    with pytest.raises(ParameterError, match="keep_prob"):
        NetworkKernel("relu", depth=2, masks=Masks(1.5))(POINTS)
    with pytest.raises(ShapeError, match="keep_prob must be a number or have one"):
        NetworkKernel("relu", depth=2, masks=Masks((0.5, 0.5)))(POINTS)
    with pytest.raises(InputTypeError, match="depth"):
        NetworkKernel("relu", depth=1.5)(POINTS)
    with pytest.raises(ParameterError, match="weight_variance"):
        NetworkKernel("relu", weight_variance=-1.0).diag(POINTS)


def test_repr():
    kernel = NetworkKernel(LeakyRelu(0.2), depth=2, masks=Masks(0.9), fan_in=True)
    assert repr(kernel) == (
        "NetworkKernel(LeakyRelu(slope=0.2), depth=2, weight_variance=1.0, "
        "bias_variance=1.0, masks=Masks(keep_prob=0.9, shared=True, inverted=True), "
        "fan_in=True)"
    )


@pytest.mark.parametrize("name", ["step", "sign"])
def test_gradients_of_jumps_between_neighbours(name):
    """The slopes grow as 1/angle; what they multiply is rounding below 1e-8."""
    kernel = NetworkKernel(name)
    for gap in (1e-7, 1e-9, 1e-12, 1e-16):
        _, gradient = kernel(np.array([[1.0], [1.0 + gap]]), eval_gradient=True)
        assert np.abs(gradient).max() < 1e-8 + gap
