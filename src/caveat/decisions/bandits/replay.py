"""Small networks that keep learning from all rounds so far.

Networks of one shape are stacked, as in a fleet (``caveat.training``): rewards of the
arm that was taken are the targets, and each batch of new rounds is followed by some
steps on rounds drawn from all of them.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from caveat import _validation as check
from caveat._random import stream_key
from caveat.decisions.bandits.protocols import Array, Integers
from caveat.theory import HALF_SQUARED_ERROR, bias_l2_penalty, l2_penalty
from caveat.training.activations import activation
from caveat.training.members import Architecture
from caveat.training.stack import Adam, Factors, Stack, Workspace, layers, per_layer
from caveat.training.streams import first_weights


@dataclass(frozen=True)
class ReplayTraining:
    """How networks learn from rounds as they come.

    Attributes
    ----------
    hidden : tuple of int
        Widths of the hidden layers, ReLU.
    every : int
        New rounds after which networks are trained again.
    n_steps : int
        Steps of Adam each time.
    batch_size : int
        Rounds in a step, drawn from all so far with replacement.
    learning_rate : float
    lengthscale, precision : float
        Of the prior and, in units of the rewards' variance, of the noise: they set
        the weight decay (E14), which falls as rounds come in.
    """

    hidden: tuple[int, ...] = (50, 50)
    every: int = 10
    n_steps: int = 20
    batch_size: int = 64
    learning_rate: float = 3e-3
    lengthscale: float = 1e-1
    precision: float = 10.0

    def __post_init__(self) -> None:
        for name in ("every", "n_steps", "batch_size"):
            check.positive_int(name, getattr(self, name))
        check.lengthscale(self.lengthscale)
        for name in ("learning_rate", "precision"):
            check.positive(name, getattr(self, name))

    def penalties(self, drop_rates: list[float], n_rows: int) -> tuple[Tensor, Tensor]:
        """L2 penalties of each weight layer, shape (layers,), and of biases."""
        prior = {"precision": self.precision, "lengthscale": self.lengthscale}
        weights = [
            l2_penalty(
                **prior,
                keep_prob=1.0 - rate,
                n_train=n_rows,
                loss=HALF_SQUARED_ERROR,
                inverted=True,
            )
            for rate in drop_rates
        ]
        bias = bias_l2_penalty(**prior, n_train=n_rows, loss=HALF_SQUARED_ERROR)
        return torch.tensor(weights), torch.tensor(bias)


class TakenArm:
    """Half the squared error of the arm that was taken.

    Targets are (rewards in the place of the arm, one-hot arms) side by side.
    """

    def n_outputs(self, n_targets: int) -> int:
        return n_targets // 2

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        rewards, taken = targets.chunk(2, -1)
        return 0.5 * ((outputs - rewards) * taken).square().sum(-1)

    def gradient(self, outputs: Tensor, targets: Tensor) -> Tensor:
        rewards, taken = targets.chunk(2, -1)
        return (outputs - rewards) * taken


@final
class ReplayNetworks:
    """Stacked networks from contexts to rewards, and the rounds they learn from.

    Parameters
    ----------
    architecture : Architecture
        Of each.
    n_networks : int
        How many.
    training : ReplayTraining
        How they learn.
    row_share : float
        In (0, 1]: the chance that a round is shown to a network at all.
    seed : int
        Of first weights, batches, masks and shares.
    """

    def __init__(
        self,
        architecture: Architecture,
        n_networks: int,
        training: ReplayTraining,
        *,
        row_share: float = 1.0,
        seed: int,
    ) -> None:
        self.architecture = architecture
        self._training = training
        self._share = row_share
        self._rng = np.random.Generator(np.random.SFC64(stream_key(seed, "replay")))
        self._noise = torch.Generator().manual_seed(stream_key(seed, "masks") >> 1)
        starts = [
            first_weights(architecture, stream_key(seed, f"network {k}"))
            for k in range(n_networks)
        ]
        self._flat = torch.from_numpy(np.stack(starts))
        self.layers = layers(self._flat, architecture)
        self._decay = torch.zeros_like(self._flat)
        self._adam = Adam(self._flat, self._decay)
        self._stack = Stack(architecture, TakenArm())
        self._rows = _Memory(architecture, n_networks)
        self._trained_at = 0

    @property
    def n_rows(self) -> int:
        """Rounds seen so far."""
        return len(self._rows)

    def add(self, contexts: Array, arms: Integers, rewards: Array) -> bool:
        """Remember rounds; says whether it is time to train."""
        shown = self._rng.random((len(arms), len(self._flat))) < self._share
        self._rows.add(contexts, arms, rewards, shown)
        return len(self._rows) - self._trained_at >= self._training.every

    @torch.no_grad()
    def train(self, drop_rate: float) -> None:
        """Some steps on the rounds so far, hidden units dropped at a rate."""
        self._trained_at = len(self._rows)
        self._set_decay(drop_rate)
        table, shown = self._rows.table()
        n_networks, size = len(self._flat), self._training.batch_size
        work = Workspace(self.architecture, n_networks, size)
        gradient = torch.empty_like(self._flat)
        into = layers(gradient, self.architecture)
        rates = torch.full((n_networks, 1), self._training.learning_rate)
        steps = zip(*self._batches(shown), self._masks(drop_rate), strict=True)
        for places, share, factors in steps:
            work.load(table, places, share)
            self._stack.gradient(self.layers, into, work, factors)
            self._adam.step(gradient, rates)

    @torch.no_grad()
    def outputs(self, contexts: Array) -> Tensor:
        """Rewards (networks, rows, arms) with no unit dropped."""
        x = torch.from_numpy(contexts).float()
        inputs = x.expand(len(self._flat), *x.shape)
        return self._stack.outputs(self.layers, inputs) * self._rows.scale()

    def scaled(self, outputs: Tensor) -> Array:
        """Outputs of a network in the units of the rewards."""
        values: Array = (outputs.double() * self._rows.scale()).numpy()
        return values

    def module(self, k: int, drop_rate: float) -> nn.Sequential:
        """Network k as a module on the same weights: it learns as they do."""
        modules: list[nn.Module] = []
        for place, (weight, bias) in enumerate(self.layers):
            if place:
                name = self.architecture.activation
                modules += [activation(name).module(), nn.Dropout(drop_rate)]
            linear = nn.utils.skip_init(nn.Linear, *weight.shape[1:])
            linear.weight = nn.Parameter(weight[k].T, requires_grad=False)
            linear.bias = nn.Parameter(bias[k, 0], requires_grad=False)
            modules.append(linear)
        return nn.Sequential(*modules).eval()

    def _set_decay(self, drop_rate: float) -> None:
        drop_rates = [0.0, *(drop_rate for _ in self.architecture.hidden)]
        weights, bias = self._training.penalties(drop_rates, len(self._rows))
        n_networks = len(self._flat)
        full = per_layer(
            weights.expand(n_networks, -1), bias.expand(n_networks), self.architecture
        )
        self._decay.copy_(2.0 * full)

    def _batches(self, shown: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of every step (steps, networks, batch), and their shares of the loss."""
        steps, size = self._training.n_steps, self._training.batch_size
        n_networks, n_rows = shown.shape
        drawn = self._rng.integers(n_rows, size=(steps, n_networks, size))
        places = torch.from_numpy(drawn)
        own = shown.expand(steps, -1, -1).gather(2, places)
        share = own / own.sum(2, keepdim=True).clamp(min=1.0)
        return places, share[..., None]

    def _masks(self, drop_rate: float) -> list[Factors]:
        """Of every step, masks 0 or 1/keep_prob on hidden units; none on the inputs."""
        steps, hidden = self._training.n_steps, self.architecture.hidden
        if drop_rate == 0.0:
            return [[None] * (len(hidden) + 1)] * steps
        size = (steps, len(self._flat), self._training.batch_size)
        layers = [
            torch.rand(*size, width, generator=self._noise)
            .ge_(drop_rate)
            .mul_(1.0 / (1.0 - drop_rate))
            for width in hidden
        ]
        return [[None, *masks] for masks in zip(*layers, strict=True)]


class _Memory:
    """All rounds: contexts, arms, rewards, and to which networks they are shown."""

    def __init__(self, architecture: Architecture, n_networks: int) -> None:
        self._n_arms = architecture.n_outputs
        self._contexts = np.zeros((0, architecture.n_inputs))
        self._arms = np.zeros(0, dtype=np.int64)
        self._rewards = np.zeros(0)
        self._shown = np.zeros((0, n_networks), dtype=bool)

    def __len__(self) -> int:
        return len(self._arms)

    def add(
        self,
        contexts: Array,
        arms: Integers,
        rewards: Array,
        shown: np.ndarray,
    ) -> None:
        self._contexts = np.concatenate([self._contexts, contexts])
        self._arms = np.concatenate([self._arms, arms])
        self._rewards = np.concatenate([self._rewards, rewards])
        self._shown = np.concatenate([self._shown, shown])

    def scale(self) -> float:
        """Root mean square of the rewards, the unit in which networks think."""
        size = float(np.sqrt(np.mean(np.square(self._rewards)))) if len(self) else 0.0
        return size if size > 0.0 else 1.0

    def table(self) -> tuple[Tensor, Tensor]:
        """Rows (contexts, rewards by arm, arms one-hot); shown, (networks, rows)."""
        taken = np.eye(self._n_arms)[self._arms]
        scaled = taken * (self._rewards / self.scale())[:, None]
        table = np.concatenate([self._contexts, scaled, taken], 1)
        shown = torch.from_numpy(self._shown.T.astype(np.float32))
        return torch.from_numpy(table).float(), shown
