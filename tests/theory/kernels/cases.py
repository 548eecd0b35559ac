"""Points, non-linearities and naive restatements shared by the tests of kernels."""

import numpy as np

from caveat.theory.kernels.covariances import Covariances
from caveat.theory.kernels.naming import NAMED
from caveat.theory.kernels.piecewise import LeakyRelu

X = np.array([[1.0, 0.5]])  # of theory.md, section 13
Y = np.array([[-0.3, 0.8]])

ALL = {**NAMED, "leaky 0.1": LeakyRelu(0.1)}
SMOOTH = ("tanh", "sigmoid", "gelu", "silu", "softplus")
ANALYTIC = ("erf", "probit", "cos", "sin", "identity", "square", *SMOOTH)
KINKED = ("relu", "leaky_relu", "abs", "step", "sign")


def pairs(seed: int = 0, n: int = 6, scale: float = 1.0) -> Covariances:
    """Covariances of random points, some of them close and one twice."""
    rng = np.random.default_rng(seed)
    x = scale * rng.standard_normal((n, 3))
    y = np.vstack([x[:1], x[1:2] + 1e-3, -x[2:3], rng.standard_normal((n - 3, 3))])
    return Covariances.of_inputs(x, y, weight_variance=0.8, bias_variance=0.3)


def plain(xx: float, yy: float, xy: float) -> Covariances:
    """One pair, given by its variances and covariance."""
    root = np.linalg.cholesky(np.array([[xx, xy], [xy, yy]]))
    return Covariances.of_inputs(
        root[:1], root[1:], weight_variance=1.0, bias_variance=0.0
    )
