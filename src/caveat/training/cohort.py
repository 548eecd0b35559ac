"""Members of a fleet that are computed together, step by step."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from caveat._threads import Stopped, never
from caveat.training.looks import Looks, looked_at
from caveat.training.members import Architecture, Member, Rows
from caveat.training.schedules import decay
from caveat.training.stack import Adam, Stack, Workspace, layers, per_layer
from caveat.training.stacked import StackedNetworks
from caveat.training.stopping import Watch
from caveat.training.streams import (
    RowOrder,
    factor_source,
    first_weights,
    training_noise,
)

_PREPARED = 2**24  # bytes of noise prepared at once
_MOST_STEPS = 64  # prepared at once


class Cohort:
    """The state of a training: networks in order of falling number of steps."""

    def __init__(self, members: Sequence[Member], data: Sequence[Rows]) -> None:
        steps = [member.n_steps(data) for member in members]
        order = sorted(range(len(members)), key=lambda i: -steps[i])
        self._back = np.argsort(order)
        self.members = [members[i] for i in order]
        self.total = np.array([steps[i] for i in order])
        self.n_steps = int(self.total.max())
        self.step = 0
        spec = members[0].spec
        self._schedule = spec.schedule
        self._orders = [
            RowOrder(len(data[m.data]), spec.schedule, m.seed) for m in self.members
        ]
        self._table, self._starts = _table(data, self.members)
        architecture = Architecture.of(spec, data[0].x.shape[1], data[0].y.shape[1])
        self._architecture = architecture
        rates = [m.drop_rates for m in self.members]
        self._noise = factor_source(spec, rates, architecture.fan_ins)
        self._rngs = training_noise(self.members)
        self.stack = Stack(architecture, spec.objective)
        self._looks = [Looks(int(total)) for total in self.total]
        seen = [looked_at(rows) for rows in data]
        self._seen = [seen[m.data] for m in self.members]
        self._state = torch.from_numpy(
            np.stack([first_weights(architecture, m.seed) for m in self.members])
        )
        penalties = torch.tensor([m.l2_penalties for m in self.members])
        biases = torch.tensor([m.bias_l2_penalty for m in self.members])
        decay = per_layer(2 * penalties, 2 * biases, architecture)
        self._adam = Adam(self._state, decay)
        self._gradient = torch.empty_like(self._state)
        self._work: Workspace | None = None

    def chunks(self, pause: int, stopped: Stopped = never) -> Iterator[int]:
        """Train for some steps, again and again; yields how many were done.

        Every ``pause`` steps a chunk ends. Once ``stopped``, there are no more, and
        the state is of no use.
        """
        while self.step < self.n_steps and not stopped():
            active = int((self.total > self.step).sum())
            left = min(pause - self.step % pause, self.n_steps - self.step)
            size = min(self._steps_at_once(active), left, self._steps_to_look())
            self._advance(active, size, stopped)
            self.step += size
            yield size

    def _steps_to_look(self) -> int:
        """Steps to the next look at the members that take the longest."""
        return self._looks[0].left(self.step)

    def _steps_at_once(self, active: int) -> int:
        units = sum(self._architecture.fan_ins)
        room = _PREPARED // (active * self._schedule.batch_size * units * 2)
        return max(1, min(room, _MOST_STEPS))

    def _advance(self, active: int, size: int, stopped: Stopped) -> None:
        batch_size = self._schedule.batch_size
        places, share = self._batches(active, size)
        rates = self._rates(active, size)
        numbers = [
            self._noise.raw(rng, size, batch_size) for rng in self._rngs[:active]
        ]
        raw = torch.from_numpy(np.stack(numbers))
        own = layers(self._state[:active], self._architecture)
        gradient = self._gradient[:active]
        into = layers(gradient, self._architecture)
        work = self._workspace(active)
        for step in range(size):
            if stopped():
                return
            work.load(self._table, places[step], share[step])
            factors = self._noise.factors(raw[:, step], batch_size)
            self.stack.gradient(own, into, work, factors)
            self._adam.step(gradient, rates[step])

    def _workspace(self, active: int) -> Workspace:
        if self._work is None or len(self._work.units[0]) != active:
            rows = self._schedule.batch_size
            self._work = Workspace(self._architecture, active, rows)
        return self._work

    def _batches(self, active: int, size: int) -> tuple[Tensor, Tensor]:
        """Places in the table (steps, members, batch) and the rows' shares."""
        rows = np.stack([o.take(size) for o in self._orders[:active]], 1)
        places, share = shared_out(rows)
        places = places + self._starts[:active, None]
        return torch.from_numpy(places), torch.from_numpy(share).unsqueeze(-1)

    def _rates(self, active: int, size: int) -> Tensor:
        """Learning rates (steps, members, 1); zero for members that have finished."""
        steps = self.step + np.arange(size)[:, None]
        peaks = np.array([m.spec.schedule.learning_rate for m in self.members[:active]])
        rates = rates_at(steps, self.total[:active], peaks, self._schedule.decay)
        return torch.from_numpy(rates).unsqueeze(-1)

    def look(self) -> None:
        """Take the losses that are due, of shorter members a little late."""
        for place, looks in enumerate(self._looks):
            looks.take(self.step, partial(self._loss, place))

    def _loss(self, place: int) -> float:
        rows, own = self._seen[place], self._state[place][None]
        outputs = self.stack.outputs(layers(own, self._architecture), rows.x[None])
        return float(self.stack.objective.loss(outputs, rows.y[None]).mean())

    def parameters(self) -> Tensor:
        """In the order in which the members were given."""
        return self._state[self._back]

    def gradient_sizes(self) -> Tensor:
        """Roots of Adam's second moments, in that order, too."""
        return self._adam.square[self._back].sqrt()

    def result(self, watch: Watch | None) -> StackedNetworks:
        parameters = self.parameters()
        stopped = torch.from_numpy(self.total[self._back])
        if watch is not None:
            parameters, when = watch.best(parameters, stopped)
            stopped = torch.minimum(when, stopped)  # it may have ended before a look
        members = tuple(self.members[i] for i in self._back)
        finite = parameters.isfinite().all(1).tolist()
        diverged = tuple(
            m.name for m, good in zip(members, finite, strict=True) if not good
        )
        losses = np.stack([self._looks[i].losses() for i in self._back])
        return StackedNetworks(
            members,
            diverged,
            stopped,
            self._architecture,
            parameters,
            losses=torch.from_numpy(losses),
        )


def shared_out(
    rows: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Rows of batches (..., batch) and the share of each in the mean loss.

    Places that a batch leaves empty, -1, become row 0 with no share.
    """
    there = rows >= 0
    if there.all():
        share = np.full(rows.shape, 1 / rows.shape[-1], dtype=np.float32)
        return np.ascontiguousarray(rows), share
    share = (there / there.sum(-1, keepdims=True)).astype(np.float32)
    return np.where(there, rows, 0), share


def rates_at(steps: Any, totals: Any, peaks: Any, name: str) -> NDArray[np.float32]:
    """Learning rates after some steps of all; zero for those that have finished.

    Parameters
    ----------
    steps, totals, peaks : arrays that fit together
        Steps done, steps to do, and the highest rates.
    name : str
        Of the decay.

    Returns
    -------
    array of float32
    """
    progress = steps / totals
    factor = decay(name)(np.minimum(progress, 1.0))
    return np.where(progress < 1, factor * peaks, 0.0).astype(np.float32)


def _table(
    data: Sequence[Rows], members: Sequence[Member]
) -> tuple[Tensor, NDArray[np.int64]]:
    """All rows as (inputs, targets) one under the other, and each member's first."""
    table = torch.cat([torch.cat([rows.x, rows.y], 1) for rows in data])
    ends = np.cumsum([len(rows) for rows in data])
    starts = np.concatenate([[0], ends[:-1]])
    return table, starts[[m.data for m in members]]
