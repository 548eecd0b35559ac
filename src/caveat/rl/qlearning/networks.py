"""Many small Q-networks as one stack of arrays, with derivatives by hand.

``caveat.MCDropout.function`` gives y(x, ω) for any module; here a step takes a fraction
of a millisecond, less than the bookkeeping of any general engine, so the few products
are written out. Networks of a stack do not see each other: each has its weights and its
generator of masks, and learns what it would learn alone.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = Callable[[Floats, int], Floats]

_LEVELS = 1 << 16


class QNetworks:
    """A stack of perceptrons with ReLU layers and dropout that is always on.

    Every pass draws its own masks, one for each row: a row is the answer of one sampled
    network. Masks are inverted (kept units are divided by the keep probability). Rates
    are rounded to multiples of 2⁻¹⁶.

    Parameters
    ----------
    sizes : sequence of int
        Inputs, hidden units, actions.
    drop_rates : sequence of float
        Of the inputs of each weight layer.
    weights, noise : sequences of numpy Generator
        One of each for every network: for its first weights, N(0, 1/inputs) with biases
        of 0.1 in the hidden layers, and for its masks.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        drop_rates: Sequence[float],
        *,
        weights: Sequence[np.random.Generator],
        noise: Sequence[np.random.Generator],
    ) -> None:
        self._noise = list(noise)
        self._thresholds = [round(rate * _LEVELS) for rate in drop_rates]
        self._gains = [np.float32(1 / (1 - t / _LEVELS)) for t in self._thresholds]
        shapes = list(pairwise(sizes))
        self.weights: list[Floats] = [
            np.stack([g.normal(0.0, n**-0.5, (n, m)) for g in weights]).astype("f")
            for n, m in shapes
        ]
        self.biases: list[Floats] = [
            np.full((len(weights), 1, m), 0.1, dtype="f") for _, m in shapes
        ]
        self.biases[-1][:] = 0.0

    def values(self, x: Floats) -> Floats:
        """Values of all actions under sampled networks, one pass.

        Parameters
        ----------
        x : array, shape (networks, rows, inputs)
            Observations.

        Returns
        -------
        array, shape (networks, rows, actions)
        """
        return self._forward(x)[-1]

    def averaged(self, x: Floats) -> Floats:
        """As :meth:`values`, with no unit dropped: the network of average weights."""
        return self._forward(x, mask=_whole)[-1]

    def gradients(
        self, x: Floats, actions: NDArray[np.int64], targets: Floats
    ) -> list[tuple[Floats, Floats]]:
        """Gradients of ½ Σ_rows (Q(x, action) - target)², through one mask (E136).

        Parameters
        ----------
        x : array, shape (networks, rows, inputs)
            Observations.
        actions : array of int, shape (networks, rows)
            Those taken.
        targets : array, shape (networks, rows)
            What their values should be.

        Returns
        -------
        list of (array, array)
            For weights and biases of each layer.
        """
        *layers, values = self._forward(x)
        taken = actions[..., None]
        error = np.take_along_axis(values, taken, -1) - targets[..., None]
        slope = np.zeros_like(values)
        np.put_along_axis(slope, taken, error, -1)
        return self._backward(layers, slope)

    def update(
        self, gradients: Sequence[tuple[Floats, Floats]], *, rate: float, decay: float
    ) -> None:
        """One step of gradient descent: w ← w - rate · gradient - decay · w."""
        pairs = zip(self.weights, self.biases, gradients, strict=True)
        for weight, bias, (by_weight, by_bias) in pairs:
            weight *= np.float32(1.0 - decay)
            by_weight *= np.float32(rate)
            weight -= by_weight
            bias -= np.float32(rate) * by_bias

    def _forward(self, x: Floats, mask: Mask | None = None) -> list[Floats]:
        """Inputs of each weight layer, masked, and the values."""
        mask = mask or self._mask
        layers = [mask(x, 0)]
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            found = layers[-1] @ weight
            found += bias
            if k + 1 < len(self.weights):
                found = mask(np.maximum(found, 0.0, out=found), k + 1)
            layers.append(found)
        return layers

    def _backward(
        self, layers: Sequence[Floats], slope: Floats
    ) -> list[tuple[Floats, Floats]]:
        found = []
        for k in reversed(range(len(layers))):
            layer = layers[k]
            found.append(
                (layer.transpose(0, 2, 1) @ slope, slope.sum(1, keepdims=True))
            )
            if k:
                # a unit passes its slope on if it was neither dropped nor negative
                slope = slope @ self.weights[k].transpose(0, 2, 1)
                slope *= layer > 0.0
                slope *= self._gains[k]
        return found[::-1]

    def _mask(self, x: Floats, layer: int) -> Floats:
        threshold = self._thresholds[layer]
        if not threshold:
            return x
        size = x[0].size
        words = -(-size // 4)  # of 64 bits, for four units each
        bits = np.array([g.bit_generator.random_raw(words) for g in self._noise])
        kept = bits.view(np.uint16)[:, :size].reshape(x.shape) >= threshold
        masked: Floats = x * kept
        masked *= self._gains[layer]
        return masked


def _whole(x: Floats, layer: int) -> Floats:
    return x
