"""The covariance function of a network, as a kernel of scikit-learn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from caveat import _validation as validation
from caveat.errors import ParameterError, ShapeError
from caveat.theory.kernels import recursion
from caveat.theory.kernels.base import Nonlinearity
from caveat.theory.kernels.covariances import Array, as_pair, as_points
from caveat.theory.kernels.naming import NonlinearityLike, as_nonlinearity
from caveat.theory.kernels.recursion import Layer, Seeds

Variance: TypeAlias = float | Sequence[float]
Bounds: TypeAlias = str | tuple[float, float]

_WIDE = (1e-4, 1e2)  # length-scales from 0.1 to 100


@dataclass(frozen=True)
class Masks:
    """Dropout in a network of infinite width (ledger E80).

    Masks are on the units that enter a layer, all layers but the first: there are
    finitely many inputs, and dropping those leaves no Gaussian process.

    Attributes
    ----------
    keep_prob : float or sequence of float
        p, one number, or one per layer after the first.
    shared : bool
        Whether all points see the same mask, as in one draw of a function. If not,
        each point of a Gram matrix has its own, and K(x, x) is larger than the
        covariance of two passes of the same x.
    inverted : bool
        Whether what is kept is divided by p, as torch does.
    """

    keep_prob: float | tuple[float, ...] = 1.0
    shared: bool = True
    inverted: bool = True

    def factors(self, n_layers: int) -> list[tuple[float, float]]:
        """By what E sigma² and E sigma sigma' are multiplied, layer by layer."""
        keeps = _per_layer("keep_prob", self.keep_prob, n_layers - 1)
        factors = [(1.0, 1.0)]
        for keep in keeps:
            keep = validation.keep_prob("keep_prob", keep)
            scale = 1 / keep**2 if self.inverted else 1.0
            factors.append((scale * keep, scale * (keep if self.shared else keep**2)))
        return factors


NO_MASKS = Masks()


class NetworkKernel(Kernel):  # type: ignore[misc]
    """Covariance function of a random network of infinite width (paper 000, 3.1).

    With one layer it is K(x, y) = E sigma(w'x + b) sigma(w'y + b) for
    w ~ N(0, weight_variance I) and b ~ N(0, bias_variance), and with more the
    recursion q' = bias_variance + weight_variance K of hidden layers (ledger E79).
    It describes the units of the last layer; end the layers with "identity" to have
    the output of a network. It works wherever scikit-learn takes a kernel, and the
    gradients are exact.

    Parameters
    ----------
    nonlinearity : str, Nonlinearity, callable, or a sequence of these
        "relu", "leaky_relu", "abs", "step", "sign", "erf", "probit", "cos", "sin",
        "uniform_phase" (half the RBF kernel), "identity", "square", "tanh",
        "sigmoid", "gelu", "silu", "softplus", or any smooth function of arrays; a
        sequence has one for each layer.
    depth : int
        How many layers of the same ``nonlinearity``; 1 for a sequence.
    weight_variance, bias_variance : float or sequence of float
        s_w² and s_b², one number for all layers, which is then one hyper-parameter,
        or one per layer. For a length-scale l both are 1/l². Biases of variance 0
        stay so when the others are fitted.
    masks : Masks
        Dropout on the units of the hidden layers.
    fan_in : bool
        Whether the weight variance of the first layer, as that of the others, is
        divided by the number of inputs.
    weight_variance_bounds, bias_variance_bounds : pair of float or "fixed"
        For fitting.

    Examples
    --------
    >>> x, y = np.array([[1.0, 0.5]]), np.array([[-0.3, 0.8]])
    >>> NetworkKernel("relu", bias_variance=0.0)(x, y)
    array([[0.17786636]])

    The output of a net with two hidden layers, given nine observations:

    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> kernel = NetworkKernel(["erf", "erf", "identity"], weight_variance=2.0)
    >>> inputs = np.linspace(-2, 2, 9)[:, None]
    >>> process = GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None)
    >>> process.fit(inputs, np.sin(inputs[:, 0])).predict([[1.0]]).round(1)
    array([0.8])
    """

    def __init__(
        self,
        nonlinearity: NonlinearityLike | Sequence[NonlinearityLike] = "relu",
        *,
        depth: int = 1,
        weight_variance: Variance = 1.0,
        bias_variance: Variance = 1.0,
        masks: Masks = NO_MASKS,
        fan_in: bool = False,
        weight_variance_bounds: Bounds = _WIDE,
        bias_variance_bounds: Bounds = _WIDE,
    ) -> None:
        self.nonlinearity = nonlinearity
        self.depth = depth
        self.weight_variance = weight_variance
        self.bias_variance = bias_variance
        self.masks = masks
        self.fan_in = fan_in
        self.weight_variance_bounds = weight_variance_bounds
        self.bias_variance_bounds = bias_variance_bounds

    @property
    def hyperparameter_weight_variance(self) -> Hyperparameter:
        """s_w² for scikit-learn."""
        return _hyperparameter(
            "weight_variance", self.weight_variance, self.weight_variance_bounds
        )

    @property
    def hyperparameter_bias_variance(self) -> Hyperparameter:
        """s_b² for scikit-learn; fixed if one of them is 0, which has no logarithm."""
        bounds = "fixed" if np.any(np.equal(self.bias_variance, 0)) else None
        return _hyperparameter(
            "bias_variance", self.bias_variance, bounds or self.bias_variance_bounds
        )

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Any:
        """Covariances of the points X, or of X and Y.

        Parameters
        ----------
        X : array_like, shape (n, inputs)
            Points.
        Y : array_like, shape (m, inputs), optional
            With masks that are not shared, K(X) has the variance of one pass on its
            diagonal, and K(X, Y) is between different passes, even for equal points.
        eval_gradient : bool
            Also return the derivatives by the logarithms of the hyper-parameters, and
            give no warnings of numerical error, as a search passes through extremes.

        Returns
        -------
        array, shape (n, m), or a pair of it and an array of shape (n, n, n_dims)
        """
        if Y is not None and eval_gradient:
            raise ParameterError("The gradient is that of K(X): leave Y out.")
        if Y is not None:
            x, y = as_pair(X, Y)
            return recursion.network_covariance(x, y, self.layers(x.shape[1]))
        x = as_points("X", X)
        layers = self.layers(x.shape[1])
        if eval_gradient:
            return recursion.gram_with_gradient(x, layers, self._seeds(len(layers)))
        return recursion.network_gram(x, layers)

    def diag(self, X: ArrayLike) -> Array:
        """Variances at the points X, shape (n,)."""
        x = as_points("X", X)
        return recursion.network_variance(x, self.layers(x.shape[1]))

    def is_stationary(self) -> bool:
        """Whether only differences of points matter: not in general."""
        return False

    def layers(self, n_inputs: int) -> list[Layer]:
        """The layers with their own parameters, for inputs of a given number."""
        sigmas = self._nonlinearities()
        count = len(sigmas)
        weights = _per_layer("weight_variance", self.weight_variance, count)
        biases = _per_layer("bias_variance", self.bias_variance, count)
        if self.fan_in:
            weights[0] = weights[0] / n_inputs
        return [
            Layer(sigma, weight, bias, *factors)
            for sigma, weight, bias, factors in zip(
                sigmas, weights, biases, self.masks.factors(count), strict=True
            )
        ]

    def _nonlinearities(self) -> list[Nonlinearity]:
        depth = validation.positive_int("depth", self.depth)
        if isinstance(self.nonlinearity, str) or not isinstance(
            self.nonlinearity, Sequence
        ):
            return [as_nonlinearity(self.nonlinearity)] * depth
        if depth > 1 or not self.nonlinearity:
            raise ParameterError(
                f"nonlinearity must be one for all of the layers, or a sequence of at "
                f"least one with depth=1. Got {len(self.nonlinearity)} of them with "
                f"depth={depth}."
            )
        return [as_nonlinearity(value) for value in self.nonlinearity]

    def _seeds(self, n_layers: int) -> Seeds:
        """Which layers each free hyper-parameter moves, in scikit-learn's order."""
        parts: dict[str, Array] = {}
        for parameter in self.hyperparameters:  # sorted by name
            shared = np.ndim(getattr(self, parameter.name)) == 0
            columns = np.ones((n_layers, 1)) if shared else np.eye(n_layers)
            free = 0 if parameter.fixed else columns.shape[1]
            parts[parameter.name] = columns[:, :free]
        biases, weights = parts["bias_variance"], parts["weight_variance"]
        return Seeds(
            np.hstack([np.zeros_like(biases), weights]),
            np.hstack([biases, np.zeros_like(weights)]),
        )

    def __repr__(self) -> str:
        shown = {
            "depth": self.depth,
            "weight_variance": np.round(self.weight_variance, 4).tolist(),
            "bias_variance": np.round(self.bias_variance, 4).tolist(),
        }
        if self.masks != NO_MASKS:
            shown["masks"] = self.masks
        if self.fan_in:
            shown["fan_in"] = True
        settings = ", ".join(f"{name}={value}" for name, value in shown.items())
        return f"NetworkKernel({self.nonlinearity!r}, {settings})"


def _hyperparameter(name: str, value: Variance, bounds: Bounds) -> Hyperparameter:
    return Hyperparameter(name, "numeric", bounds, int(np.size(value)))


def _per_layer(name: str, value: Any, n_layers: int) -> list[Any]:
    """One value for each layer, from one for all or from a sequence."""
    if np.ndim(value) == 0:
        return [value] * n_layers
    if len(value) != n_layers:
        raise ShapeError(
            f"{name} must be a number or have one for each of {n_layers} layers. "
            f"Got {len(value)}."
        )
    return list(value)
