"""Cosine and sine: reference values, the RBF kernel, and large arguments."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from caveat.theory.kernels import CosineWave, NetworkKernel, SineWave, UniformPhase
from caveat.theory.kernels.covariances import Covariances
from tests.theory.kernels.cases import X, Y, pairs


# theory.md, section 13: s_b², K(x, y), K(x, x)
@pytest.mark.parametrize(
    ("sigma", "bias", "product", "square"),
    [
        (CosineWave(), 0.0, 0.37343612322954, 0.54104249931195),
        (CosineWave(), 0.25, 0.30729068224328, 0.52489353418393),
        (SineWave(), 0.0, 0.03721962952281, 0.45895750068805),
        (SineWave(), 0.25, 0.10336507050907, 0.47510646581607),
    ],
)
def test_reference_values(sigma, bias, product, square):
    q = Covariances.of_inputs(X, Y, weight_variance=1.0, bias_variance=bias)
    assert sigma.product_mean(q)[0, 0] == pytest.approx(product, abs=1e-13)
    assert sigma.square_mean(q.xx)[0] == pytest.approx(square, abs=1e-13)


@pytest.mark.parametrize(
    ("lengthscale", "expected"), [(1.0, 0.20532787637617), (0.5, 0.014219412357092)]
)
def test_reference_values_of_a_uniform_phase(lengthscale, expected):
    kernel = NetworkKernel("uniform_phase", weight_variance=lengthscale**-2)
    assert kernel(X, Y)[0, 0] == pytest.approx(expected, abs=1e-13)


def test_uniform_phase_is_half_of_the_rbf_kernel():
    x = np.random.default_rng(0).standard_normal((7, 3))
    kernel = 2.0 * NetworkKernel("uniform_phase", weight_variance=0.7**-2)
    assert_allclose(kernel(x), RBF(0.7)(x), atol=1e-14)
    shifted = kernel(x + 100.0, x[:3] + 100.0)
    assert_allclose(shifted, RBF(0.7)(x, x[:3]), atol=1e-10)


def test_squares_of_cosine_and_sine_add_up():
    """cos² + sin² = 1, and cos u cos v + sin u sin v = cos(u - v)."""
    q = pairs()
    assert_allclose(CosineWave().square_mean(q.xx) + SineWave().square_mean(q.xx), 1)
    total = CosineWave().product_mean(q) + SineWave().product_mean(q)
    assert_allclose(total, 2 * UniformPhase().product_mean(q), atol=1e-15)


def test_nothing_overflows():
    q = pairs().scaled(1e6)
    for sigma in (CosineWave(), SineWave(), UniformPhase()):
        assert np.isfinite(sigma.product_mean(q)).all()
    assert SineWave().product_mean(q)[0, 0] == pytest.approx(0.5)


def test_small_sines_are_linear():
    q = pairs().scaled(1e-20)
    assert_allclose(SineWave().product_mean(q), q.xy, rtol=1e-12)
