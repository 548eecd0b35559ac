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
from caveat.training.stack import Factors, Layers, Stack, layers
from caveat.training.trained import Trained

_GROUP = 512  # draws whose noise is made at once
_DRAWN = 2**18  # numbers of a layer, of the draws that are computed at once


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
            losses=None if self.losses is None else self.losses[list(chosen)],
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
        if not self.has_noise:
            yield self._mean_outputs(x).expand(n_draws, -1, -1, -1)
            return
        own, first = self._layers(x.dtype), self._first_noisy()
        h = self._before_noise(own[:first], x)
        most = self._at_once(first, x.shape[1])
        for start in range(0, n_draws, _GROUP):
            group = range(start, min(start + _GROUP, n_draws))
            factors = self._factors(Address(seed, group, x.dtype))[first:]
            for begin in range(0, len(group), most):
                some = [f if f is None else f[:, begin : begin + most] for f in factors]
                yield self._drawn(own[first:], h, some)

    @torch.no_grad()
    def _mean_outputs(self, x: Tensor) -> Tensor:
        stack = Stack(self.architecture, self.spec.objective)
        return stack.outputs(self._layers(x.dtype), x)

    def _layers(self, dtype: torch.dtype) -> Layers:
        return layers(self.parameters.to(dtype), self.architecture)

    def _first_noisy(self) -> int:
        """The first weight layer before which any network has noise."""
        rates = zip(*(member.drop_rates for member in self.members), strict=True)
        return next(place for place, own in enumerate(rates) if any(own))

    def _at_once(self, first: int, rows: int) -> int:
        """Draws that are computed together, so that their units fit the caches."""
        rows = max(rows, 1)
        (inputs, width), *others = self.architecture.shapes[first:]
        if not others:
            numbers = max(rows, inputs) * width  # of the outputs, or of the weights
        else:
            numbers = rows * max(inputs, width, *(out for _, out in others))
        return max(1, min(_GROUP, _DRAWN // (len(self) * numbers)))

    def _factors(self, address: Address) -> Factors:
        found = self._memory.get(address)
        if found is None:
            seeds = [self.mask_seed(i, address.seed) for i in range(len(self))]
            found = factors_of(
                self.members, seeds, self.architecture, address.draws, address.dtype
            )
            self._memory.put(address, found)
        return found

    def _before_noise(self, own: Layers, x: Tensor) -> Tensor:
        """Units that all draws share, (members, rows, units)."""
        function = activation(self.architecture.activation).function
        h = x
        for weight, bias in own:
            h = torch.baddbmm(bias, h, weight)
            function(h, h)
        return h

    def _drawn(self, own: Layers, h: Tensor, factors: Factors) -> Tensor:
        """Outputs for factors (members, draws, units): (draws, members, rows, …)."""
        first = factors[0]
        assert first is not None
        if len(own) == 1:
            return _in_one_product(h, *own[0], first)
        function = activation(self.architecture.activation).function
        h = h.unsqueeze(1) * first.unsqueeze(2)  # (members, draws, rows, units)
        shape = h.shape[1:3]
        for place, ((weight, bias), factor) in enumerate(
            zip(own, factors, strict=True)
        ):
            if place:
                function(h, h)
                if factor is not None:
                    h.mul_(factor.unsqueeze(2))
            h = torch.baddbmm(bias, h.flatten(1, 2), weight).unflatten(1, shape)
        return h.transpose(0, 1)


def _in_one_product(h: Tensor, weight: Tensor, bias: Tensor, factor: Tensor) -> Tensor:
    """The last layer of all draws at once: the noise moves to the weights."""
    # (members, inputs, draws, outputs)
    noisy = weight.unsqueeze(2) * factor.transpose(1, 2).unsqueeze(-1)
    drawn = torch.bmm(h, noisy.flatten(2)).unflatten(2, noisy.shape[2:])
    return (drawn.permute(2, 0, 1, 3) + bias).contiguous()
