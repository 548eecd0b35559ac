"""Many small Q-networks as one stack, with masks that are always drawn.

``caveat.MCDropout.function`` gives y(x, ω) for any module; here a step takes a fraction
of a millisecond, so the networks are a stack of ``caveat.training``, which is
differentiated by hand. Networks of a stack do not see each other: each has its weights
and its generator of masks, and learns what it would learn alone.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from caveat.training.members import Architecture
from caveat.training.stack import Factors, Stack, Workspace, layers

Floats: TypeAlias = NDArray[np.float32]

_LEVELS = 1 << 16


class TakenAction:
    """Half the squared error of the value of the action that was taken (E136).

    Targets (..., rows, 2) are the number of the action and what its value should be.
    """

    def __init__(self, n_actions: int) -> None:
        self._n_actions = n_actions

    def n_outputs(self, n_targets: int) -> int:
        """One for each action, which the targets do not tell."""
        return self._n_actions

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Loss of each row, shape (..., rows)."""
        taken, value = _split(targets)
        return 0.5 * (outputs.gather(-1, taken) - value).squeeze(-1).square()

    def gradient(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Derivative in the outputs: zero but for the action that was taken."""
        taken, value = _split(targets)
        error = outputs.gather(-1, taken).sub_(value)
        return torch.zeros_like(outputs).scatter_(-1, taken, error)


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
        n_inputs, *hidden, n_actions = sizes
        self.architecture = Architecture(n_inputs, tuple(hidden), n_actions)
        self._stack = Stack(self.architecture, TakenAction(n_actions))
        self._noise = list(noise)
        self._thresholds = [round(rate * _LEVELS) for rate in drop_rates]
        self._gains = [np.float32(1 / (1 - t / _LEVELS)) for t in self._thresholds]
        pairs = zip(self.architecture.fan_ins, self._thresholds, strict=True)
        self._dropped = [units if threshold else 0 for units, threshold in pairs]
        self._flat = torch.empty(len(weights), self.architecture.n_parameters)
        self._layers = layers(self._flat, self.architecture)
        self._gradient = torch.empty_like(self._flat)
        self._slopes = layers(self._gradient, self.architecture)
        self._work: dict[int, Workspace] = {}
        self._begin(weights)

    @property
    def weights(self) -> list[Floats]:
        """Of each layer, shape (networks, inputs, outputs); to be written to."""
        return [weight.numpy() for weight, _ in self._layers]

    @property
    def biases(self) -> list[Floats]:
        """Of each layer, shape (networks, 1, outputs); to be written to."""
        return [bias.numpy() for _, bias in self._layers]

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
        return self._values(x, self._factors(x.shape[1]))

    def averaged(self, x: Floats) -> Floats:
        """As :meth:`values`, with no unit dropped: the network of average weights."""
        return self._values(x, None)

    @torch.inference_mode()
    def descend(
        self,
        x: Floats,
        actions: NDArray[np.int64],
        targets: Floats,
        *,
        rate: float,
        decay: float,
    ) -> None:
        """One step on ½ Σ_rows (Q(x, action) - target)², through one mask (E136).

        w ← w - rate · gradient - decay · w, the last for weights, not for biases.

        Parameters
        ----------
        x : array, shape (networks, rows, inputs)
            Observations.
        actions : array of int, shape (networks, rows)
            Those taken.
        targets : array, shape (networks, rows)
            What their values should be.
        rate, decay : float
            Of the gradient of the sum, and of the weights.
        """
        self._differentiate(x, actions, targets)
        for weight, _ in self._layers:
            weight.mul_(1.0 - decay)
        self._flat.sub_(self._gradient, alpha=rate)

    def _differentiate(
        self, x: Floats, actions: NDArray[np.int64], targets: Floats
    ) -> None:
        work, factors = self._room(x.shape[1]), self._factors(x.shape[1])
        work.x = torch.from_numpy(x)
        table = np.empty((*actions.shape, 2), dtype="f")
        table[..., 0], table[..., 1] = actions, targets
        work.y = torch.from_numpy(table)
        self._stack.gradient(self._layers, self._slopes, work, factors)

    @torch.inference_mode()
    def _values(self, x: Floats, factors: Factors | None) -> Floats:
        found = self._stack.outputs(self._layers, torch.from_numpy(x), factors)
        values: Floats = found.numpy()
        return values

    def _factors(self, n_rows: int) -> list[Tensor | None]:
        """Masks divided by the keep probability; None where nothing is dropped."""
        sizes = [n_rows * units for units in self._dropped]
        starts = [0, *accumulate(-(-size // 4) for size in sizes)]  # in 64-bit words
        bits = self._bits(starts[-1])
        factors: list[Tensor | None] = []
        for layer, (start, size) in enumerate(zip(starts[:-1], sizes, strict=True)):
            own = bits[:, 4 * start : 4 * start + size]
            factors.append(self._factor(layer, own, n_rows) if size else None)
        return factors

    def _bits(self, words: int) -> NDArray[np.uint16]:
        """Random numbers of 16 bits, a row for each network."""
        if not words:
            return np.empty((len(self._noise), 0), np.uint16)
        raw = [g.bit_generator.random_raw(words) for g in self._noise]
        return np.array(raw).view(np.uint16)

    def _factor(self, layer: int, bits: NDArray[np.uint16], n_rows: int) -> Tensor:
        factor = np.multiply(bits >= self._thresholds[layer], self._gains[layer])
        return torch.from_numpy(factor).view(len(bits), n_rows, -1)

    def _room(self, n_rows: int) -> Workspace:
        """Memory for a step on so many rows, the same every time."""
        if n_rows not in self._work:
            work = Workspace(self.architecture, len(self._noise), n_rows)
            work.share = torch.ones(1)  # a sum over the rows
            self._work[n_rows] = work
        return self._work[n_rows]

    def _begin(self, generators: Sequence[np.random.Generator]) -> None:
        for weight, bias in self._layers:
            _, n, m = weight.shape
            first = np.stack([g.normal(0.0, n**-0.5, (n, m)) for g in generators])
            weight.copy_(torch.from_numpy(first))
            bias.fill_(0.1)
        bias.fill_(0.0)


def _split(targets: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers of actions, and their values."""
    return targets[..., :1].long(), targets[..., 1:]
