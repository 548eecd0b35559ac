"""The networks of a fleet after training, and their draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from caveat.errors import ShapeError
from caveat.training.members import Member, Recipe, network
from caveat.training.stack import Stack, layers
from caveat.training.streams import drawing_noise, noise_of

_GROUP = 64  # draws whose noise is made at once
_DRAWN = 2**21  # activations of a layer, of the draws that are computed at once


@dataclass(frozen=True)
class Trained:
    """The networks of a fleet after training.

    Attributes
    ----------
    recipe : Recipe
    members : tuple of Member
    parameters : Tensor, shape (members, parameters)
    diverged : tuple of str
        Names of the members whose weights are not finite.
    stopped : Tensor, shape (members,)
        Steps after which each was stopped early; its full number otherwise.
    """

    recipe: Recipe
    members: tuple[Member, ...]
    parameters: Tensor
    diverged: tuple[str, ...]
    stopped: Tensor

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, chosen: Sequence[int]) -> "Trained":
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

    def network(self, index: int) -> nn.Sequential:
        """One member as an ordinary PyTorch network, in evaluation mode.

        Parameters
        ----------
        index : int
            Its place in ``members``.

        Returns
        -------
        nn.Sequential
        """
        own = layers(self.parameters[index : index + 1], self.recipe.architecture)
        return network(
            self.recipe, self.members[index], [(w[0], b[0, 0]) for w, b in own]
        )

    def draws(self, x: Tensor, *, n_draws: int, seed: int = 0) -> Tensor:
        """Draws of every member, each with one set of masks shared by all rows.

        Parameters
        ----------
        x : Tensor, shape (members, rows, inputs) or (rows, inputs)
            Standardised as the training rows were.
        n_draws : int
            At least 1.
        seed : int
            The draws of a member depend on it and on the member's seed only.

        Returns
        -------
        Tensor, shape (draws, members, rows, outputs)
        """
        blocks = list(self.blocks(x, n_draws=n_draws, seed=seed))
        return torch.cat(blocks)

    def blocks(self, x: Tensor, *, n_draws: int, seed: int = 0) -> Iterator[Tensor]:
        """The draws of :meth:`draws`, some at a time, for sums over many of them.

        Parameters
        ----------
        x, n_draws, seed
            As for :meth:`draws`.

        Yields
        ------
        Tensor, shape (some draws, members, rows, outputs)
        """
        x = self._inputs(x)
        noise = noise_of(self.recipe, self.members)
        rngs = drawing_noise(self.members, seed)
        widest = max(width for _, width in self.recipe.architecture.shapes)
        most = max(1, min(_GROUP, _DRAWN // (x.shape[1] * len(self) * widest)))
        for start in range(0, n_draws, _GROUP):
            raw = np.concatenate([noise.raw(rng, 1, _GROUP) for rng in rngs])
            factors = noise.factors(torch.from_numpy(raw), _GROUP)
            size = min(_GROUP, n_draws - start)
            for first in range(0, size, most):
                some = slice(first, min(first + most, size))
                chosen = [f if f is None else f[:, some] for f in factors]
                yield self._outputs(x, chosen, some.stop - some.start)

    def _outputs(
        self, x: Tensor, factors: Sequence[Tensor | None], size: int
    ) -> Tensor:
        """Outputs for factors (members, draws, units): (draws, members, rows, …)."""
        architecture, count = self.recipe.architecture, len(self)
        own = [
            (
                _per_draw(weight, size) if factor is None else _noisy(weight, factor),
                _per_draw(bias, size),
            )
            for (weight, bias), factor in zip(
                layers(self.parameters, architecture), factors, strict=True
            )
        ]
        stack = Stack(architecture, self.recipe.objective)
        outputs = stack.outputs(own, _per_draw(x, size))
        return outputs.unflatten(0, (size, count))

    def mean_outputs(self, x: Tensor) -> Tensor:
        """Outputs with the noise switched off (standard dropout).

        Parameters
        ----------
        x : Tensor
            As for :meth:`draws`.

        Returns
        -------
        Tensor, shape (members, rows, outputs)
        """
        quiet = [None] * len(self.recipe.architecture.shapes)
        return self._outputs(self._inputs(x), quiet, 1)[0]

    def _inputs(self, x: Tensor) -> Tensor:
        count, inputs = len(self.members), self.recipe.architecture.n_inputs
        if x.ndim == 2:
            x = x.expand(count, *x.shape)
        if x.ndim != 3 or len(x) != count or x.shape[2] != inputs:
            raise ShapeError(
                f"x must have the shape ({count} members, rows, {inputs} inputs) or "
                f"(rows, {inputs}). Got {tuple(x.shape)}."
            )
        return x.to(torch.float32)


def _per_draw(values: Tensor, n_draws: int) -> Tensor:
    """The same for each draw: (members, …) to (draws x members, …)."""
    return values.expand(n_draws, *values.shape).flatten(0, 1)


def _noisy(weight: Tensor, factor: Tensor) -> Tensor:
    """Weights (members, in, out) and factors (members, draws, in), for each draw."""
    return (weight * factor.transpose(0, 1).unsqueeze(-1)).flatten(0, 1)
