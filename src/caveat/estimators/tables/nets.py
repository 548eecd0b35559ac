"""The networks among the candidates: recipes, trained as fleets on all folds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from caveat._random import signed
from caveat.estimators.tables.records import curve_of
from caveat.sampling import MCDropout
from caveat.training.fleet import train
from caveat.training.folds import Fold
from caveat.training.members import Architecture, Member, Rows
from caveat.training.objectives import Likelihood, Weighted
from caveat.training.schedules import Schedule
from caveat.training.spec import NetworkSpec
from caveat.training.stacked import StackedNetworks
from caveat.training.streams import combined_seed

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Recipe:
    """How one kind of network is trained.

    Attributes
    ----------
    name : str
    view : str
        Which columns it sees: ``"encoded"`` or ``"pieces"``.
    hidden : tuple of int
    drop_rate : float
    decay : float
        Weight decay of all layers.
    steps : int
        Batches that it learns from.
    limit : float
        Robust standard deviations beyond which a residual is pulled in.
    """

    name: str
    view: str
    hidden: tuple[int, ...]
    drop_rate: float
    decay: float
    steps: int
    limit: float = 20.0


@dataclass(frozen=True, eq=False)
class Nets:
    """The networks of a recipe, one per fold, and the units they think in.

    Attributes
    ----------
    view : str
    hidden : tuple of int
    drop_rate : float
    mean, scale : array, shape (columns,)
        Standard units of the columns.
    parameters : array, shape (folds, parameters)
    units : array, shape (folds, outputs)
        Of the outputs of each network.
    curve : tuple of float
        How their mean loss fell.
    """

    view: str
    hidden: tuple[int, ...]
    drop_rate: float
    mean: Array
    scale: Array
    parameters: Array
    units: Array
    curve: tuple[float, ...] = ()
    _kept: list[StackedNetworks] = field(
        init=False, repr=False, compare=False, default_factory=list
    )

    def draws(
        self,
        x: Array,
        *,
        n_draws: int,
        seed: int,
        only: int | None = None,
        shift: int = 0,
    ) -> Array:
        """Outputs (draws, networks, rows, outputs) for columns of its view.

        ``shift`` is added to the seed of each network's masks.
        """
        z = torch.from_numpy((x - self.mean) / self.scale)
        fleet, units = self._fleet(), self.units
        if shift:
            each = [
                MCDropout(net.double(), seed=signed(own + shift)).draws(
                    z, n_draws=n_draws
                )
                for net, own in zip(self.modules(), self.seeds(seed), strict=True)
            ]
            return np.asarray(torch.stack(each, 1).numpy() * units[:, None, :])
        if only is not None:
            fleet, units = fleet[[only]], units[[only]]
        found = fleet.draws(z, n_draws=n_draws, seed=seed).numpy()
        return np.asarray(found * units[:, None, :])

    def means(self, x: Array) -> Array:
        """Outputs without noise, (networks, rows, outputs)."""
        z = torch.from_numpy((x - self.mean) / self.scale)
        return np.asarray(
            self._fleet().mean_outputs(z).numpy() * self.units[:, None, :]
        )

    def seeds(self, seed: int) -> list[int]:
        """Those of the masks of each network, if ``seed`` is that of all."""
        fleet = self._fleet()
        return [fleet.mask_seed(i, seed) for i in range(len(fleet))]

    def modules(self) -> tuple[nn.Sequential, ...]:
        """The networks, in evaluation mode and in units of their own."""
        fleet = self._fleet()
        return tuple(fleet.network(i) for i in range(len(fleet)))

    def _fleet(self) -> StackedNetworks:
        if not self._kept:
            spec = NetworkSpec(self.hidden, drop_rate=self.drop_rate)
            flat = torch.from_numpy(np.asarray(self.parameters))
            n_outputs = self.units.shape[1]
            shape = Architecture(len(self.mean), self.hidden, n_outputs)
            zeros = (0.0,) * len(spec.drop_rates)
            members = tuple(
                Member(f"network {i}", spec, zeros) for i in range(len(flat))
            )
            steps = torch.zeros(len(flat), dtype=torch.int64)
            self._kept.append(StackedNetworks(members, (), steps, shape, flat))
        return self._kept[0]

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_kept": []}


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a fold's networks of all recipes are to learn.

    Attributes
    ----------
    fold : Fold
    targets : array, shape (rows of the fold, outputs)
        In units of their own, or class numbers.
    weight : array, shape (rows of the fold,)
        Of the rows.
    """

    fold: Fold
    targets: Array
    weight: Array


def train_nets(
    recipes: Sequence[Recipe],
    views: Mapping[str, Array],
    lessons: Mapping[str, Sequence[Lesson]],
    objective: Likelihood,
    *,
    batch_size: int,
    learning_rate: float,
    seed: int,
    progress: bool | None,
) -> dict[str, tuple[Nets, list[int]]]:
    """Train all recipes on all folds, those of one shape as one fleet.

    Parameters
    ----------
    recipes : sequence of Recipe
        Which networks.
    views : mapping of str to array, shape (rows, columns)
        The columns of each view, of all rows.
    lessons : mapping of str to sequence of Lesson
        By the name of the recipe: one per fold.
    objective : Likelihood
        The loss.
    batch_size, learning_rate : int, float
        Of all.
    seed : int
        Of all.
    progress : bool or None
        Whether to show a bar.

    Returns
    -------
    dict of str to (Nets, list of int)
        By the name of the recipe, with units of 1 and the folds whose network
        diverged.
    """
    found = {}
    each = [lesson for own in lessons.values() for lesson in own]
    is_weighted = any((lesson.weight != 1.0).any() for lesson in each)
    loss = Weighted(objective) if is_weighted else objective
    shapes = dict.fromkeys((r.view, r.hidden) for r in recipes)
    for place, shape in enumerate(shapes):
        own = [r for r in recipes if (r.view, r.hidden) == shape]
        x = views[shape[0]]
        mean, scale = x.mean(0), x.std(0)
        scale = np.where(scale > 1e-9, scale, 1.0)
        z = (x - mean) / scale
        data: list[Rows] = []
        members: list[Member] = []
        for recipe in own:
            for number, lesson in enumerate(lessons[recipe.name]):
                schedule = _schedule(recipe, lesson, batch_size, learning_rate)
                spec = NetworkSpec(
                    recipe.hidden,
                    drop_rate=recipe.drop_rate,
                    objective=loss,
                    schedule=schedule,
                )
                members.append(
                    Member(
                        f"{recipe.name}, fold {number}",
                        spec,
                        (0.5 * recipe.decay,) * len(spec.drop_rates),
                        data=len(data),
                        seed=combined_seed(seed, place, len(data)),
                    )
                )
                targets = lesson.targets
                if is_weighted:
                    targets = np.column_stack([targets, lesson.weight])
                data.append(Rows.of(z[lesson.fold.train], targets))
        trained = train(members, data, progress=progress)
        assert isinstance(trained, StackedNetworks) and trained.losses is not None
        flat = trained.parameters.numpy()
        n_outputs = trained.architecture.n_outputs
        start = 0
        for recipe in own:
            count = len(lessons[recipe.name])
            own_places = slice(start, start + count)
            part = flat[own_places]
            start += count
            bad = [i for i, row in enumerate(part) if not np.isfinite(row).all()]
            nets = Nets(
                recipe.view,
                recipe.hidden,
                recipe.drop_rate,
                mean,
                scale,
                part.copy(),
                np.ones((count, n_outputs)),
                curve_of(trained.losses[own_places]),
            )
            found[recipe.name] = nets, bad
    return found


def _schedule(
    recipe: Recipe, lesson: Lesson, batch_size: int, learning_rate: float
) -> Schedule:
    rows = len(lesson.fold.train)
    per_epoch = max(1, rows // batch_size)
    epochs = max(1, round(recipe.steps / per_epoch))
    return Schedule(epochs, batch_size, learning_rate)
