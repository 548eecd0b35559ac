"""Fleets whose noise is a family of ``caveat.noise``: one module after the other.

Stacked networks know multiplicative noise only. Networks with another noise (learned
rates, noise on weights) are trained by ``single.fit_module`` instead, each on its
bound, and answer the same questions as a ``Trained`` fleet.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from caveat.errors import CaveatError
from caveat.noise import Noise
from caveat.training.activations import activation
from caveat.training.members import Member, Recipe, Rows, linear_layer, network
from caveat.training.single import fit_module
from caveat.training.stack import layers
from caveat.training.streams import first_weights, steps_per_epoch

_AT_ONCE = 64  # draws in a block


@dataclass(frozen=True)
class TrainedModules:
    """Networks with any noise after training; see ``caveat.training.Trained``.

    Attributes
    ----------
    recipe : Recipe
    members : tuple of Member
    modules : tuple of nn.Sequential
        In evaluation mode.
    diverged : tuple of str
        Always empty: a divergence is an error here.
    stopped : Tensor, shape (members,)
        Steps of each.
    """

    recipe: Recipe
    members: tuple[Member, ...]
    modules: tuple[nn.Sequential, ...]
    diverged: tuple[str, ...]
    stopped: Tensor

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, chosen: Sequence[int]) -> "TrainedModules":
        """Some of the networks, as a fleet of their own."""
        return replace(
            self,
            members=tuple(self.members[i] for i in chosen),
            modules=tuple(self.modules[i] for i in chosen),
            stopped=self.stopped[list(chosen)],
        )

    def network(self, index: int) -> nn.Sequential:
        """One member, in evaluation mode."""
        return self.modules[index]

    def draws(self, x: Tensor, *, n_draws: int, seed: int = 0) -> Tensor:
        """Draws of every member, shape (draws, members, rows, outputs).

        Noise on units is drawn for each row, noise on weights once for all rows.
        """
        return torch.cat(list(self.blocks(x, n_draws=n_draws, seed=seed)))

    def blocks(self, x: Tensor, *, n_draws: int, seed: int = 0) -> Iterator[Tensor]:
        """The draws of :meth:`draws`, some at a time."""
        for start in range(0, n_draws, _AT_ONCE):
            size = min(_AT_ONCE, n_draws - start)
            with torch.no_grad(), torch.random.fork_rng([]):
                torch.manual_seed(_seed(seed, start))
                parts = [_drawn(module, x, size) for module in self.modules]
            yield torch.stack(parts, 1)

    def mean_outputs(self, x: Tensor) -> Tensor:
        """Outputs with the noise switched off, shape (members, rows, outputs)."""
        with torch.no_grad():
            return torch.stack([module(x) for module in self.modules])


def train_modules(
    recipe: Recipe,
    members: Sequence[Member],
    data: Sequence[Rows],
    *,
    progress: bool | None = False,
) -> TrainedModules:
    """Train the members one by one, each on its bound.

    Parameters
    ----------
    recipe : Recipe
        Whose noise is a family.
    members : sequence of Member
        Made by ``Member.from_prior``. The family acts before every weight layer whose
        drop rate is not 0; the rate itself is the family's own.
    data : sequence of Rows
        Which members refer to.
    progress : bool or None
        Show a progress bar for each; None shows it on a terminal.

    Returns
    -------
    TrainedModules
    """
    modules = tuple(_trained(recipe, m, data[m.data], progress) for m in members)
    steps = [m.epochs * steps_per_epoch(len(data[m.data]), recipe) for m in members]
    return TrainedModules(recipe, tuple(members), modules, (), torch.tensor(steps))


def untrained(recipe: Recipe, member: Member) -> nn.Sequential:
    """The network of a member with its first weights, whatever its noise is."""
    flat = torch.from_numpy(first_weights(recipe.architecture, member.seed))
    own = [(w[0], b[0, 0]) for w, b in layers(flat[None], recipe.architecture)]
    family = recipe.noise
    if not isinstance(family, Noise):
        return network(recipe, member, own)
    modules: list[nn.Module] = []
    for place, (weight, bias) in enumerate(own):
        if place:
            modules.append(activation(recipe.architecture.activation).module())
        linear = linear_layer(weight, bias)
        noisy = member.drop_rates[place] > 0
        modules.append(family.wrap(linear) if noisy else linear)
    return nn.Sequential(*modules)


def _trained(
    recipe: Recipe, member: Member, rows: Rows, progress: bool | None
) -> nn.Sequential:
    try:
        return fit_module(
            untrained(recipe, member),
            rows,
            recipe,
            precision=1.0 / (member.kl_share * len(rows)),
            lengthscale=member.lengthscale,
            learning_rate=member.learning_rate,
            epochs=member.epochs,
            seed=_seed(member.seed),
            progress=progress,
        )
    except CaveatError as error:
        raise type(error)(f"{member.name}: {error}") from error


def _drawn(module: nn.Sequential, x: Tensor, n_draws: int) -> Tensor:
    module.train()
    try:
        return torch.stack([module(x) for _ in range(n_draws)])
    finally:
        module.eval()


def _seed(*parts: int) -> int:
    """A seed that torch's generators take."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> 1)
