"""Identity and square."""

from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import DotProduct

from caveat.theory.kernels import Identity, NetworkKernel, Square
from tests.theory.kernels.cases import X, Y, pairs


def test_identity_is_the_linear_kernel():
    kernel = NetworkKernel("identity", weight_variance=1.0, bias_variance=0.49)
    assert_allclose(kernel(X, Y), DotProduct(0.7)(X, Y), rtol=1e-14)


def test_square_by_isserlis():
    """E u² v² = q_uu q_vv + 2 q_uv² (E76), three times the square for u = v."""
    q = pairs()
    expected = q.xx[:, None] * q.yy + 2 * q.xy**2
    assert_allclose(Square().product_mean(q), expected, rtol=1e-14)
    assert_allclose(Square().square_mean(q.xx), 3 * q.xx**2, rtol=1e-14)


def test_identity_keeps_everything():
    q = pairs()
    product, shortfall = Identity().moments(q)
    assert_allclose(product, q.xy)
    assert_allclose(shortfall, q.shortfall)
