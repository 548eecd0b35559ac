"""The randomness of each network of a fleet, from its own seed.

Every member has three generators, for its first weights, the order of its rows and
its noise, so what it draws does not depend on its neighbours, on how many steps are
prepared at once, or on the batch it is trained in.
"""

import math
from collections.abc import Sequence
from typing import Any, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from caveat.training.members import Architecture, Member
from caveat.training.schedules import Schedule
from caveat.training.spec import NetworkSpec

_LEVELS = 65536  # a drop rate is rounded to a multiple of 1/65536
_WEIGHTS, _ORDER, _NOISE = range(3)


def combined_seed(*seeds: int) -> int:
    """One seed of 64 bits that differs whenever one of several does."""
    return int(np.random.SeedSequence(seeds).generate_state(1, np.uint64)[0])


def mask_seed(*seeds: int) -> int:
    """The same for masks: 63 bits, which torch's generators take, too."""
    return combined_seed(*seeds) >> 1


def generator(seed: int, purpose: int, *more: int) -> np.random.Generator:
    """The generator of a member for one purpose."""
    return np.random.Generator(np.random.SFC64([seed, purpose, *more]))


def first_weights(architecture: Architecture, seed: int) -> NDArray[np.float32]:
    """Glorot's uniform weights and zero biases, flat: W1, b1, W2, b2, …"""
    rng = generator(seed, _WEIGHTS)
    parts = []
    for inputs, outputs in architecture.shapes:
        limit = math.sqrt(6.0 / (inputs + outputs))
        parts.append(rng.uniform(-limit, limit, inputs * outputs))
        parts.append(np.zeros(outputs))
    return np.concatenate(parts).astype(np.float32)


class RowOrder:
    """Batches of row numbers of one member, epoch after epoch."""

    def __init__(self, n_rows: int, schedule: Schedule, seed: int) -> None:
        self._rng = generator(seed, _ORDER)
        self._n_rows = n_rows
        self._size = schedule.batch_size
        self._n_steps = schedule.steps_per_epoch(n_rows)
        self._waiting = np.empty((0, self._size), dtype=np.int64)

    def take(self, n_steps: int) -> NDArray[np.int64]:
        """The next batches, shape (steps, batch); -1 where a batch has no more rows."""
        missing = max(0, n_steps - len(self._waiting))
        new = self._epochs(-(-missing // self._n_steps))
        batches = np.concatenate([self._waiting, new])
        self._waiting = batches[n_steps:]
        return batches[:n_steps]

    def _epochs(self, count: int) -> NDArray[np.int64]:
        """Batches of whole epochs, shape (steps, batch)."""
        places = self._n_steps * self._size
        order = np.full((count, max(places, self._n_rows)), -1, dtype=np.int64)
        order[:, : self._n_rows] = np.arange(self._n_rows)
        for epoch in order[:, : self._n_rows]:
            self._rng.shuffle(epoch)
        return order[:, :places].reshape(-1, self._size)


class FactorSource(Protocol):
    """Turns random numbers of the members into the factors of their units."""

    def raw(self, rng: np.random.Generator, n_steps: int, rows: int) -> NDArray[Any]:
        """Random numbers of one member for some steps, shape (steps, enough)."""
        ...

    def factors(self, raw: Tensor, rows: int) -> list[Tensor | None]:
        """Per weight layer, factors (members, rows, units); None where all are 1.

        The next call may overwrite them.
        """
        ...


Rates = Sequence[tuple[float, ...]]


def drop_levels(drop_rates: Rates) -> tuple[NDArray[np.int16], NDArray[np.float32]]:
    """From which of 2^16 random numbers on a unit is kept, and what it is scaled by.

    Parameters
    ----------
    drop_rates : sequence of tuple of float
        Of each member, one per weight layer.

    Returns
    -------
    thresholds : array of int16, shape (members, layers)
    scales : array of float32, of the same shape
    """
    levels = np.rint(np.array(drop_rates) * _LEVELS).astype(np.int64)
    keep = 1.0 - levels / _LEVELS
    return (levels - _LEVELS // 2).astype(np.int16), (1.0 / keep).astype(np.float32)


def gaussian_stds(drop_rates: Rates) -> NDArray[np.float32]:
    """Standard deviations of Gaussian factors, shape (members, layers)."""
    rates = np.array(drop_rates)
    return np.sqrt(rates / (1.0 - rates)).astype(np.float32)


@final
class DropFactors:
    """Factors 0 or 1/keep_prob, from 16 random bits each.

    Parameters
    ----------
    drop_rates : sequence of tuple of float
        Of each member, one per weight layer.
    fan_ins : sequence of int
        Units on which the noise of each weight layer acts.
    """

    def __init__(self, drop_rates: Rates, fan_ins: Sequence[int]) -> None:
        thresholds, scales = drop_levels(drop_rates)
        self._fan_ins = fan_ins
        self._used = [bool((column > -_LEVELS // 2).any()) for column in thresholds.T]
        self._thresholds = _columns(thresholds)
        self._scales = _columns(scales)
        self._memory: dict[tuple[int, ...], Tensor] = {}

    def raw(
        self, rng: np.random.Generator, n_steps: int, rows: int
    ) -> NDArray[np.int16]:
        words = -(-rows * sum(self._fan_ins) // 4)
        bits = rng.bit_generator.random_raw(n_steps * words)
        return bits.view(np.int16).reshape(n_steps, 4 * words)

    def factors(self, raw: Tensor, rows: int) -> list[Tensor | None]:
        found: list[Tensor | None] = []
        count, start = len(raw), 0
        for layer, units in enumerate(self._fan_ins):
            stop = start + rows * units
            bits = raw[:, start:stop].view(count, rows, units)
            start = stop
            if not self._used[layer]:
                found.append(None)
                continue
            kept = self._room(layer, bits.shape)
            torch.ge(bits, self._thresholds[layer][:count], out=kept)
            found.append(kept.mul_(self._scales[layer][:count]))
        return found

    def _room(self, layer: int, shape: Sequence[int]) -> Tensor:
        """Memory for factors, the same at every step."""
        key = (layer, *shape)
        if key not in self._memory:
            self._memory[key] = torch.empty(*shape)
        return self._memory[key]


@final
class GaussianFactors:
    """Factors N(1, drop_rate / keep_prob).

    Parameters
    ----------
    drop_rates, fan_ins
        As for :class:`DropFactors`.
    """

    def __init__(self, drop_rates: Rates, fan_ins: Sequence[int]) -> None:
        rates = np.array(drop_rates)
        self._fan_ins = fan_ins
        self._used = [bool(column.any()) for column in rates.T]
        self._sds = _columns(gaussian_stds(drop_rates))

    def raw(
        self, rng: np.random.Generator, n_steps: int, rows: int
    ) -> NDArray[np.float32]:
        units = sum(self._fan_ins)
        return rng.standard_normal((n_steps, rows * units), dtype=np.float32)

    def factors(self, raw: Tensor, rows: int) -> list[Tensor | None]:
        found: list[Tensor | None] = []
        count, start = len(raw), 0
        for layer, units in enumerate(self._fan_ins):
            stop = start + rows * units
            normal = raw[:, start:stop].view(count, rows, units)
            start = stop
            noisy = (normal * self._sds[layer][:count]).add_(1.0)
            found.append(noisy if self._used[layer] else None)
        return found


def factor_source(
    spec: NetworkSpec, drop_rates: Rates, fan_ins: Sequence[int]
) -> FactorSource:
    """The noise of a spec while networks learn, at the rates of some members."""
    kind = GaussianFactors if spec.noise == "gaussian" else DropFactors
    return kind(drop_rates, fan_ins)


def training_noise(members: Sequence[Member]) -> list[np.random.Generator]:
    """The generators of the members' noise while they learn."""
    return [generator(member.seed, _NOISE) for member in members]


def _columns(values: NDArray[np.generic]) -> list[Tensor]:
    """One tensor (members, 1, 1) per weight layer."""
    return [torch.from_numpy(v.copy())[:, None, None] for v in values.T]
