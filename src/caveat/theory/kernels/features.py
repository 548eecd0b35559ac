"""The finite-feature approximation of a kernel: one layer of K random units."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caveat import _validation as validation
from caveat._random import Seed, as_seed
from caveat.errors import ShapeError
from caveat.theory.kernels.base import Nonlinearity
from caveat.theory.kernels.covariances import Array, as_points
from caveat.theory.kernels.naming import NonlinearityLike, as_nonlinearity
from caveat.theory.kernels.network import NetworkKernel


@dataclass(frozen=True, eq=False)
class RandomFeatures:
    """K random units whose inner products approximate a kernel (paper 000, eq. 8).

    Khat(x, y) = (1/K) sum_k sigma(w_k'x + b_k) sigma(w_k'y + b_k) (ledger E83). A
    linear model on the features with weights N(0, I) is the Gaussian process with
    the kernel Khat, exactly.

    Attributes
    ----------
    nonlinearity : Nonlinearity
    weights : array, shape (inputs, K)
    biases : array, shape (K,)

    Examples
    --------
    >>> units = RandomFeatures.draw("relu", 2, n_features=1000, seed=0)
    >>> units(np.zeros((5, 2))).shape
    (5, 1000)
    """

    nonlinearity: Nonlinearity
    weights: Array
    biases: Array

    @classmethod
    def draw(
        cls,
        nonlinearity: NonlinearityLike,
        n_inputs: int,
        *,
        n_features: int,
        weight_variance: float = 1.0,
        bias_variance: float = 1.0,
        seed: Seed = None,
    ) -> "RandomFeatures":
        """Draw the units.

        Parameters
        ----------
        nonlinearity : str, Nonlinearity or callable
            As in ``NetworkKernel``.
        n_inputs : int
            Q.
        n_features : int
            K.
        weight_variance, bias_variance : float
            s_w² and s_b².
        seed : int, torch.Generator or None
            Fixes the draw.

        Returns
        -------
        RandomFeatures
        """
        kernel = NetworkKernel(
            nonlinearity, weight_variance=weight_variance, bias_variance=bias_variance
        )
        n_inputs = validation.positive_int("n_inputs", n_inputs)
        n_features = validation.positive_int("n_features", n_features)
        (layer,) = kernel.layers(n_inputs)
        generator = np.random.default_rng(as_seed(seed) % 2**63)
        normal = generator.standard_normal((n_inputs, n_features))
        weights = math.sqrt(layer.weight_variance) * normal
        sigma = as_nonlinearity(nonlinearity)
        biases = sigma.draw_biases(generator, n_features, layer.bias_variance)
        return cls(sigma, weights, biases)

    def __call__(self, x: ArrayLike) -> Array:
        """Features sigma(w'x + b) / sqrt(K) of points, shape (n, K)."""
        points = as_points("x", x)
        n_inputs, n_features = self.weights.shape
        if points.shape[1] != n_inputs:
            raise ShapeError(
                f"x must have the shape (points, {n_inputs}). Got {points.shape}."
            )
        active = self.nonlinearity(points @ self.weights + self.biases)
        return active / math.sqrt(n_features)

    def kernel(self, x: ArrayLike, y: Any = None) -> Array:
        """Khat of points x, or of x and y, shape (n, m)."""
        left = self(x)
        # E83: Khat = Phi Phi'
        return left @ (left if y is None else self(y)).T
