"""Trained networks with noise on units: all members and draws in batched products."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import torch
from torch import Tensor, nn

from caveat.training.activations import activation
from caveat.training.masks import Address, FactorMemory, factors_of
from caveat.training.members import Architecture
from caveat.training.networks import network, of_one
from caveat.training.stack import Factors, Layers, layers
from caveat.training.trained import Trained

_GROUP = 512  # draws whose noise is made at once
_DRAWN = 2**21  # numbers of a layer, of the draws that are computed at once


@final
@dataclass(frozen=True, eq=False)
class StackedNetworks(Trained):
    """A fleet with ``"bernoulli"`` or ``"gaussian"`` noise.

    Attributes
    ----------
    architecture : Architecture
    parameters : Tensor, shape (members, parameters)
    """

    architecture: Architecture
    parameters: Tensor
    _memory: FactorMemory = field(init=False, repr=False, default_factory=FactorMemory)

    def __getitem__(self, chosen: Sequence[int]) -> "StackedNetworks":
        """Some of the networks, as a fleet of their own."""
        members = tuple(self.members[i] for i in chosen)
        names = {m.name for m in members}
        return replace(
            self,
            members=members,
            parameters=self.parameters[list(chosen)],
            diverged=tuple(n for n in self.diverged if n in names),
            stopped=self.stopped[list(chosen)],
        )

    @property
    def n_inputs(self) -> int:
        """Columns of x."""
        return self.architecture.n_inputs

    def network(self, index: int) -> nn.Sequential:
        """One member as an ordinary PyTorch network, in evaluation mode."""
        flat = self.parameters[index : index + 1]
        return network(self.members[index].spec, of_one(flat, self.architecture))

    @torch.no_grad()
    def _blocks(self, x: Tensor, n_draws: int, seed: int) -> Iterator[Tensor]:
        own = self._layers(x.dtype)
        most = self._at_once(x.shape[1])
        for start in range(0, n_draws, _GROUP):
            group = range(start, min(start + _GROUP, n_draws))
            factors = self._factors(Address(seed, group, x.dtype))
            for first in range(0, len(group), most):
                stop = min(first + most, len(group))
                some = [f if f is None else f[:, first:stop] for f in factors]
                yield self._outputs(own, x, some, stop - first)

    @torch.no_grad()
    def _mean_outputs(self, x: Tensor) -> Tensor:
        own = self._layers(x.dtype)
        return self._outputs(own, x, [None] * len(own), 1)[0]

    def _layers(self, dtype: torch.dtype) -> Layers:
        return layers(self.parameters.to(dtype), self.architecture)

    def _at_once(self, rows: int) -> int:
        """Draws that are computed together."""
        shapes = self.architecture.shapes
        widest = max(max(rows * width, inputs * width) for inputs, width in shapes)
        return max(1, min(_GROUP, _DRAWN // (len(self) * widest)))

    def _factors(self, address: Address) -> Factors:
        found = self._memory.get(address)
        if found is None:
            seeds = [self.mask_seed(i, address.seed) for i in range(len(self))]
            found = factors_of(
                self.members, seeds, self.architecture, address.draws, address.dtype
            )
            self._memory.put(address, found)
        return found

    def _outputs(
        self, own: Layers, x: Tensor, factors: Factors, n_draws: int
    ) -> Tensor:
        """Outputs for factors (members, draws, units): (draws, members, rows, …).

        Before the first noise all draws have the same units, (members, rows, units).
        """
        function = activation(self.architecture.activation).function
        h = x
        for place, ((weight, bias), factor) in enumerate(
            zip(own, factors, strict=True)
        ):
            if place:
                function(h, h)
            if h.ndim == 4:
                h = _each(h, weight, bias, factor)
            elif factor is None:
                h = torch.baddbmm(bias, h, weight)
            else:
                h = _first(h, weight, bias, factor)
        return h if h.ndim == 4 else h.expand(n_draws, *h.shape)


def _first(h: Tensor, weight: Tensor, bias: Tensor, factor: Tensor) -> Tensor:
    """Units that all draws share, times noise: one product for all draws."""
    # (members, in, draws, out): the noise moves to the weights
    noisy = weight.unsqueeze(2) * factor.transpose(1, 2).unsqueeze(-1)
    drawn = torch.bmm(h, noisy.flatten(2)).unflatten(2, noisy.shape[2:])
    return drawn.permute(2, 0, 1, 3) + bias


def _each(h: Tensor, weight: Tensor, bias: Tensor, factor: Tensor | None) -> Tensor:
    """Units (draws, members, rows, in) of each draw, times its noise."""
    if factor is None:
        return torch.matmul(h, weight) + bias
    return torch.matmul(h, weight * factor.transpose(0, 1).unsqueeze(-1)) + bias
