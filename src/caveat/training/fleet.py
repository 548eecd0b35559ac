"""A fleet: many small networks trained as one batched computation.

A search or a table of results needs hundreds of small networks (splits x settings x
seeds). One by one each spends its time in Python; stacked, they share every call.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from caveat import _validation as validation
from caveat._progress import ProgressBar
from caveat.errors import CaveatWarning, ParameterError, ShapeError
from caveat.noise import Noise
from caveat.training.members import Member, Recipe, Rows, network
from caveat.training.modules import TrainedModules, train_modules
from caveat.training.schedules import schedule
from caveat.training.stack import Adam, Stack, Workspace, layers, per_layer
from caveat.training.stopping import Watch
from caveat.training.streams import (
    RowOrder,
    drawing_noise,
    first_weights,
    noise_of,
    steps_per_epoch,
    training_noise,
)
from caveat.training.threads import side_by_side

_PREPARED = 2**24  # bytes of noise prepared at once
_MOST_STEPS = 64  # prepared at once
_GROUP = 64  # draws whose noise is made at once
_DRAWN = 2**21  # activations of a layer, of the draws that are computed at once
_COHORT = 2**17  # activations of a layer, of the members that are computed together
_LEAST_COHORT = 8


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


def train(
    recipe: Recipe,
    members: Sequence[Member],
    data: Sequence[Rows],
    *,
    watch: Watch | None = None,
    n_threads: int | None = None,
    progress: bool | None = False,
) -> Trained | TrainedModules:
    """Train all members at once, each on its data set with its own settings.

    Parameters
    ----------
    recipe : Recipe
        What they have in common.
    members : sequence of Member
        Their names must differ. A member's result depends on its own settings and
        seed, not on the others (up to the rounding of batched products).
    data : sequence of Rows
        The data sets that members refer to, of any lengths, standardised.
    watch : Watch, optional
        Stops members early; see ``caveat.training.stopping``.
    n_threads : int, optional
        How many cores to use, by default as many as torch does.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.

    Returns
    -------
    Trained, or TrainedModules if the noise is a family
        In the order of ``members``. Those that diverged are named there and in a
        warning; the others are not touched by it.

    Examples
    --------
    >>> rows = Rows.of(np.linspace(-1, 1, 40)[:, None], np.linspace(-1, 1, 40))
    >>> net = Architecture(n_inputs=1, hidden=(20,), n_outputs=1)
    >>> members = [
    ...     Member(f"rate {rate}", (0.0, rate), (0.0, 0.0), epochs=50, seed=7)
    ...     for rate in (0.05, 0.5)
    ... ]
    >>> trained = train(Recipe(net), members, [rows])
    >>> trained.draws(rows.x, n_draws=100).shape
    torch.Size([100, 2, 40, 1])
    """
    _check(recipe, members, data)
    if isinstance(recipe.noise, Noise):
        if watch is not None:
            raise ParameterError(_NO_WATCH)
        return train_modules(recipe, members, data, progress=progress)
    if watch is None:
        parts = _cohorts(recipe, members, data)
    else:
        parts = [list(range(len(members)))]
    with _bar(recipe, members, data, progress) as bar:
        done = side_by_side(
            lambda part: _train_cohort(
                recipe, [members[i] for i in part], data, watch, bar
            ),
            parts,
            n_threads or torch.get_num_threads(),
        )
    return _joined(done, [i for part in parts for i in part])


def _cohorts(
    recipe: Recipe, members: Sequence[Member], data: Sequence[Rows]
) -> list[list[int]]:
    """Members that are computed together: of like length, and fitting the caches."""
    widest = max(recipe.architecture.fan_ins)
    size = max(_LEAST_COHORT, _COHORT // (recipe.batch_size * widest))
    order = sorted(
        range(len(members)), key=lambda i: -_n_steps(recipe, members[i], data)
    )
    return [order[start : start + size] for start in range(0, len(order), size)]


@torch.no_grad()
def _train_cohort(
    recipe: Recipe,
    members: Sequence[Member],
    data: Sequence[Rows],
    watch: Watch | None,
    bar: ProgressBar,
) -> Trained:
    run = _Run(recipe, members, data)
    for done in run.chunks(watch.every if watch else run.n_steps):
        bar.advance(done * len(members))
        if watch is not None and watch.is_due(run.step):
            watch.look(run.stack, run.parameters(), run.step)
            if watch.has_given_up():
                break
    return run.result(watch)


def _joined(parts: Sequence[Trained], order: Sequence[int]) -> Trained:
    """Cohorts as one fleet in the order of its members; warns of those diverged."""
    back = np.argsort(order).tolist()
    joined = Trained(
        parts[0].recipe,
        tuple(member for part in parts for member in part.members),
        torch.cat([part.parameters for part in parts]),
        tuple(name for part in parts for name in part.diverged),
        torch.cat([part.stopped for part in parts]),
    )
    if joined.diverged:
        names = _some(joined.diverged)
        warnings.warn(_DIVERGED.format(names=names), CaveatWarning, stacklevel=3)
    return joined[back]


def _bar(
    recipe: Recipe,
    members: Sequence[Member],
    data: Sequence[Rows],
    show: bool | None,
) -> ProgressBar:
    total = sum(_n_steps(recipe, member, data) for member in members)
    return ProgressBar("Training steps", total, show)


def _n_steps(recipe: Recipe, member: Member, data: Sequence[Rows]) -> int:
    return member.epochs * steps_per_epoch(len(data[member.data]), recipe)


class _Run:
    """The state of a training: networks in order of falling number of steps."""

    def __init__(
        self, recipe: Recipe, members: Sequence[Member], data: Sequence[Rows]
    ) -> None:
        steps = [_n_steps(recipe, member, data) for member in members]
        order = sorted(range(len(members)), key=lambda i: -steps[i])
        self._back = np.argsort(order)
        self.members = [members[i] for i in order]
        self.total = np.array([steps[i] for i in order])
        self.n_steps = int(self.total.max())
        self.step = 0
        self._recipe = recipe
        self._orders = [
            RowOrder(len(data[m.data]), recipe, m.seed) for m in self.members
        ]
        self._table, self._starts = _table(data, self.members)
        self._noise = noise_of(recipe, self.members)
        self._rngs = training_noise(self.members)
        self.stack = Stack(recipe.architecture, recipe.objective)
        architecture = recipe.architecture
        self._state = torch.from_numpy(
            np.stack([first_weights(architecture, m.seed) for m in self.members])
        )
        penalties = torch.tensor([m.l2_penalties for m in self.members])
        biases = torch.tensor([m.bias_l2_penalty for m in self.members])
        decay = per_layer(2 * penalties, 2 * biases, architecture)
        self._adam = Adam(self._state, decay)
        self._gradient = torch.empty_like(self._state)
        self._work: Workspace | None = None

    def chunks(self, pause: int) -> Iterator[int]:
        """Train for some steps, again and again; yields how many were done.

        Every ``pause`` steps a chunk ends.
        """
        while self.step < self.n_steps:
            active = int((self.total > self.step).sum())
            left = min(pause - self.step % pause, self.n_steps - self.step)
            size = min(self._steps_at_once(active), left)
            self._advance(active, size)
            self.step += size
            yield size

    def _steps_at_once(self, active: int) -> int:
        units = sum(self._recipe.architecture.fan_ins)
        room = _PREPARED // (active * self._recipe.batch_size * units * 2)
        return max(1, min(room, _MOST_STEPS))

    def _advance(self, active: int, size: int) -> None:
        recipe = self._recipe
        places, share = self._batches(active, size)
        rates = self._rates(active, size)
        raw = torch.from_numpy(
            np.stack(
                [
                    self._noise.raw(rng, size, recipe.batch_size)
                    for rng in self._rngs[:active]
                ]
            )
        )
        own = layers(self._state[:active], recipe.architecture)
        gradient = self._gradient[:active]
        into = layers(gradient, recipe.architecture)
        work = self._workspace(active)
        for step in range(size):
            work.load(self._table, places[step], share[step])
            factors = self._noise.factors(raw[:, step], recipe.batch_size)
            self.stack.gradient(own, into, work, factors)
            self._adam.step(gradient, rates[step])

    def _workspace(self, active: int) -> Workspace:
        if self._work is None or len(self._work.units[0]) != active:
            recipe = self._recipe
            self._work = Workspace(recipe.architecture, active, recipe.batch_size)
        return self._work

    def _batches(self, active: int, size: int) -> tuple[Tensor, Tensor]:
        """Places in the table (steps, members, batch) and the rows' shares."""
        rows = np.stack([o.take(size) for o in self._orders[:active]], 1)
        there = rows >= 0
        share = there / there.sum(-1, keepdims=True)
        places = np.where(there, rows, 0) + self._starts[:active, None]
        return (
            torch.from_numpy(places),
            torch.from_numpy(share.astype(np.float32)).unsqueeze(-1),
        )

    def _rates(self, active: int, size: int) -> Tensor:
        """Learning rates (steps, members, 1); zero for members that have finished."""
        steps = self.step + np.arange(size)[:, None]
        progress = steps / self.total[:active]
        factor = schedule(self._recipe.schedule)(np.minimum(progress, 1.0))
        peak = np.array([m.learning_rate for m in self.members[:active]])
        rates = np.where(progress < 1, factor * peak, 0.0)
        return torch.from_numpy(rates.astype(np.float32)).unsqueeze(-1)

    def parameters(self) -> Tensor:
        """In the order in which the members were given."""
        return self._state[self._back]

    def result(self, watch: Watch | None) -> Trained:
        parameters = self.parameters()
        stopped = torch.from_numpy(self.total[self._back])
        if watch is not None:
            parameters, stopped = watch.best(parameters, stopped)
        members = tuple(self.members[i] for i in self._back)
        finite = parameters.isfinite().all(1).tolist()
        diverged = tuple(
            m.name for m, good in zip(members, finite, strict=True) if not good
        )
        return Trained(self._recipe, members, parameters, diverged, stopped)


_NO_WATCH = """early stopping works with 'bernoulli' and 'gaussian' noise only. Leave it
out, or choose the number of epochs by a search."""
_DIVERGED = """the weights of {names} are not finite: training diverged.
The other members are not affected. Lower the learning rate of these."""


def _some(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(map(repr, names[:most]))
    more = len(names) - most
    return f"{shown} and {more} more" if more > 0 else shown


def _table(
    data: Sequence[Rows], members: Sequence[Member]
) -> tuple[Tensor, NDArray[np.int64]]:
    """All rows as (inputs, targets) one under the other, and each member's first."""
    table = torch.cat([torch.cat([rows.x, rows.y], 1) for rows in data])
    ends = np.cumsum([len(rows) for rows in data])
    starts = np.concatenate([[0], ends[:-1]])
    return table, starts[[m.data for m in members]]


def _check(recipe: Recipe, members: Sequence[Member], data: Sequence[Rows]) -> None:
    architecture, layer_count = recipe.architecture, len(recipe.architecture.shapes)
    if not members:
        raise ParameterError("members must hold at least one network. Got none.")
    names = [m.name for m in members]
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise ParameterError(f"names of members must differ. Got {twice!r} twice.")
    for member in members:
        _check_member(member, layer_count, len(data))
    for place, rows in enumerate(data):
        _check_rows(rows, place, architecture.n_inputs)


def _check_member(member: Member, layer_count: int, n_sets: int) -> None:
    where = f"member {member.name!r}"
    for label in ("drop_rates", "l2_penalties"):
        if len(getattr(member, label)) != layer_count:
            raise ParameterError(
                f"{label} of {where} must have one value per weight layer, "
                f"{layer_count}. Got {getattr(member, label)}."
            )
    for rate in member.drop_rates:
        validation.drop_rate(rate, where=where)
    validation.positive_int(f"epochs of {where}", member.epochs)
    if not 0 <= member.data < n_sets:
        raise ParameterError(
            f"data of {where} must be the number of one of {n_sets} data sets. "
            f"Got {member.data}."
        )


def _check_rows(rows: Rows, place: int, n_inputs: int) -> None:
    if not len(rows) or rows.x.shape[1] != n_inputs:
        raise ShapeError(
            f"data set {place} must have rows of {n_inputs} inputs. "
            f"Got {tuple(rows.x.shape)}."
        )
    if not (rows.x.isfinite().all() and rows.y.isfinite().all()):
        raise ParameterError(f"data set {place} must be finite. Got NaN or infinity.")
