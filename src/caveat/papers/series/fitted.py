"""Dropout nets for series that fit their data within minutes: Adam, spread kinks.

Drop rates, widths and depths are those of the released nets; first weights
(:mod:`~caveat.papers.series.starts`), optimiser and batches are not.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from caveat.papers.series.nets import ORDER, Gradients, NetState, Training
from caveat.papers.series.starts import spread_kinks, tents
from caveat.training.schedules import cosine
from caveat.training.stack import Adam, layers
from caveat.training.streams import generator

FITTED = ", fitted"
_STARTS = {"relu": tents, "tanh": spread_kinks}


@dataclass(frozen=True)
class FittedNet(Training):
    """Adam, its rate falling along half a cosine, on batches of random rows."""

    scale: float = 1.0  # what x is multiplied by

    def module(self, parameters: Tensor) -> nn.Sequential:
        """The net with the scale of x in its first weights."""
        scaled = parameters.clone()
        layers(scaled, self.architecture)[0][0].mul_(self.scale)
        return super().module(scaled)

    def first(self, rows: Tensor) -> NetState:
        """Tents for ReLU, spread kinks for tanh."""
        parameters = torch.zeros(1, self.architecture.n_parameters)
        start = _STARTS[self.activation](
            self._scaled(rows)[:, :1],
            self.width,
            self.n_hidden,
            torch.Generator().manual_seed(0),
        )
        own = layers(parameters, self.architecture)
        for (weight, bias), (first, kinks) in zip(own, start, strict=True):
            weight.copy_(first)
            bias.copy_(kinks)
        return NetState.first(parameters, "mean", "square")

    def steps(self, state: NetState, rows: Tensor) -> Iterator[int]:
        """Adam without decay."""
        gradients = Gradients(self, state.parameters)
        adam = Adam(state.parameters, torch.zeros(1, 1), done=state.step)
        adam.mean, adam.square = state.moments["mean"], state.moments["square"]
        scaled = self._scaled(rows)
        for step in range(state.step, self.n_steps):
            order = generator(0, ORDER, step).permutation(len(rows))
            places = torch.from_numpy(order[: self.batch_size])
            gradient = gradients.at(step, scaled, places)
            rate = self.rate * cosine(np.array(step / self.n_steps)).item()
            adam.step(gradient, torch.full((1, 1), rate))
            yield step + 1

    def _scaled(self, rows: Tensor) -> Tensor:
        return rows * torch.tensor([self.scale, 1.0])
