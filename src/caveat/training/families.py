"""Fleets whose noise is a family of ``caveat.noise``: one module after the other.

Stacked networks know noise on units only. Networks with another noise (learned rates,
noise on weights) are trained by ``single.fit_module``, each on its bound.
"""

import copy
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import torch
from torch import Tensor, nn

from caveat.errors import DivergedError
from caveat.sampling.mcdropout import MCDropout
from caveat.training.members import Architecture, Member, Rows
from caveat.training.networks import untrained
from caveat.training.single import fit_module
from caveat.training.streams import mask_seed
from caveat.training.trained import Trained


@final
class _InDtypes:
    """Modules in other dtypes, made once, so that what is known of them is reused."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[tuple[int, torch.dtype], nn.Sequential] = {}

    def get(self, module: nn.Sequential, dtype: torch.dtype) -> nn.Sequential:
        """The module itself if it has that dtype, else its copy."""
        if next(module.parameters()).dtype == dtype:
            return module
        key = (id(module), dtype)
        with self._lock:
            if key not in self._made:
                self._made[key] = copy.deepcopy(module).to(dtype)
            return self._made[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return _InDtypes, ()


@final
@dataclass(frozen=True, eq=False)
class SeparateNetworks(Trained):
    """Networks with any noise after training.

    Attributes
    ----------
    architecture : Architecture
    modules : tuple of nn.Sequential
        In evaluation mode.
    """

    architecture: Architecture
    modules: tuple[nn.Sequential, ...]
    _dtypes: _InDtypes = field(init=False, repr=False, default_factory=_InDtypes)

    def __getitem__(self, chosen: Sequence[int]) -> "SeparateNetworks":
        """Some of the networks, as a fleet of their own."""
        return replace(
            self,
            members=tuple(self.members[i] for i in chosen),
            modules=tuple(self.modules[i] for i in chosen),
            stopped=self.stopped[list(chosen)],
        )

    @property
    def n_inputs(self) -> int:
        """Columns of x."""
        return self.architecture.n_inputs

    def network(self, index: int) -> nn.Sequential:
        """One member, in evaluation mode."""
        return self.modules[index]

    def _blocks(self, x: Tensor, n_draws: int, seed: int) -> Iterator[Tensor]:
        parts = [
            self._drawn(i, own, n_draws, self.mask_seed(i, seed))
            for i, own in enumerate(x)
        ]
        yield torch.stack(parts, 1)

    def _drawn(self, index: int, x: Tensor, n_draws: int, seed: int) -> Tensor:
        module = self._dtypes.get(self.modules[index], x.dtype)
        if not any(self.members[index].drop_rates):
            with torch.no_grad():
                plain = module(x)
            return plain.expand(n_draws, *plain.shape)
        drawn = MCDropout(module, seed=seed).draws(x, n_draws=n_draws, progress=False)
        assert isinstance(drawn, Tensor)
        return drawn

    @torch.no_grad()
    def _mean_outputs(self, x: Tensor) -> Tensor:
        modules = [self._dtypes.get(module, x.dtype) for module in self.modules]
        return torch.stack([m(own) for m, own in zip(modules, x, strict=True)])


def train_one_by_one(
    members: Sequence[Member],
    data: Sequence[Rows],
    *,
    progress: bool | None = False,
) -> SeparateNetworks:
    """Train the members one by one, each on its bound.

    Parameters
    ----------
    members : sequence of Member
        Made by ``Member.of``. The family acts before every weight layer whose drop
        rate is not 0; the rate itself is the family's own.
    data : sequence of Rows
        Which members refer to.
    progress : bool or None
        Show a progress bar for each; None shows it on a terminal.

    Returns
    -------
    SeparateNetworks
        None of which has diverged: that is an error here.
    """
    first = data[members[0].data]
    shape = Architecture.of(members[0].spec, first.x.shape[1], first.y.shape[1])
    modules = tuple(_fitted(shape, m, data[m.data], progress) for m in members)
    steps = torch.tensor([m.n_steps(data) for m in members])
    return SeparateNetworks(tuple(members), (), steps, shape, modules)


def _fitted(
    shape: Architecture, member: Member, rows: Rows, progress: bool | None
) -> nn.Sequential:
    try:
        return fit_module(
            untrained(member.spec, shape, member.seed),
            rows,
            objective=member.spec.objective,
            schedule=member.spec.schedule,
            precision=1.0 / (member.kl_share * len(rows)),
            lengthscale=member.spec.lengthscale,
            seed=mask_seed(member.seed),
            progress=progress,
        )
    except DivergedError as error:
        raise DivergedError(f"{member.name}: {error}") from error
