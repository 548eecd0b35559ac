"""The draws of all batches on their way to a predictive: kept, or summed up."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor

from caveat import _validation as check
from caveat._progress import ProgressBar
from caveat.predictive import CategoricalAccumulator, GaussianAccumulator
from caveat.sampling.engine import Session
from caveat.sampling.outputs import Picker

MAX_DRAWS = 10_000
_FIRST_ROUND = 32  # draws before a tolerance is first looked at
_BLOCK = 1 << 20  # numbers gathered before they are summarised

Accumulator = GaussianAccumulator | CategoricalAccumulator


@dataclass(frozen=True)
class Rounds:
    """How many draws: so many, or until their error is below a tolerance.

    Attributes
    ----------
    n_draws : int
        How many, without a tolerance.
    tolerance : float or None
        Largest Monte Carlo error, relative to the predictive spread.
    max_draws : int
        How many at most, with a tolerance.
    """

    n_draws: int
    tolerance: float | None = None
    max_draws: int = MAX_DRAWS

    def __post_init__(self) -> None:
        check.positive_int("n_draws", self.n_draws)
        check.positive_int("max_draws", self.max_draws)
        if self.tolerance is not None:
            check.unit_interval("tolerance", self.tolerance)

    @property
    def first(self) -> range:
        """The first round; the only one, without a tolerance."""
        if self.tolerance is None:
            return range(self.n_draws)
        return range(min(_FIRST_ROUND, self.max_draws))

    def after(self, done: int, errors: Iterable[float]) -> range:
        """The round after ``done`` draws with these errors; empty if they will do."""
        tolerance, most = self.tolerance, self.max_draws
        if tolerance is None or done >= most or all(e <= tolerance for e in errors):
            return range(done, done)
        return range(done, min(2 * done, most))


class FoundMoments(NamedTuple):
    """Mean and variance of a batch, known better than by its draws."""

    method: str
    mean: Tensor  # shape: (batch, *event)
    variance: Tensor  # shape: (batch, *event)
    mean_error: Tensor  # shape: (batch, *event)
    covariance: Tensor | None  # shape: (batch, D, D)
    excess: float = 0.0  # kurtosis of the noise, to compare with draws


class Reading(ABC):
    """The draws of a batch, and what is known of it beside them."""

    def __init__(self, session: Session, picker: Picker) -> None:
        self._session = session
        self._picker = picker

    def draws(self, numbers: range) -> Iterator[Tensor]:
        """The tensor of interest of each draw; good until the next is asked for."""
        structure = self._session.structure
        for leaves in self._session.outputs(numbers):
            yield self._picker.pick(leaves, structure)

    @abstractmethod
    def moments(self) -> FoundMoments | None:
        """Mean and variance in closed form, or None: then those of the draws do."""

    def relative_error(self, precision: Tensor) -> float | None:
        """Largest Monte Carlo error of a mean over the predictive std."""
        found = self.moments()
        if found is None:
            return None
        noise = 1.0 / check.precision_for(precision, found.mean)
        return float((found.mean_error / (found.variance + noise).sqrt()).max())


@final
class Sampled(Reading):
    """Draws, and nothing else."""

    def moments(self) -> None:
        return None


Readings = Iterable[tuple[Reading, ProgressBar]]


def keep(readings: Readings, n_draws: int) -> tuple[Tensor, list[FoundMoments | None]]:
    """All draws in one tensor, and what else was found, by batch."""
    parts, found = [], []
    for reading, bar in readings:
        kept: Tensor | None = None
        for number, tensor in enumerate(reading.draws(range(n_draws))):
            if kept is None:
                kept = tensor.new_empty((n_draws, *tensor.shape))
            kept[number].copy_(tensor)
            bar.advance()
        assert kept is not None
        parts.append(kept)
        found.append(reading.moments())
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1), found


def gather(
    readings: Readings,
    rounds: Rounds,
    accumulator: Callable[[], Accumulator],
    precision: Tensor | None = None,
) -> list["Gathering"]:
    """The draws of every batch summed up, as many of each."""
    gatherings: list[Gathering] = []
    for reading, bar in readings:
        gathering = Gathering(reading, accumulator(), precision)
        for taken in gathering.take(rounds.first):
            bar.advance(taken)
        if rounds.tolerance is None:
            gathering.finish()
        gatherings.append(gathering)
    done = rounds.first.stop
    while more := rounds.after(done, (g.relative_error() for g in gatherings)):
        for gathering in gatherings:
            for _ in gathering.take(more):
                pass
        done = more.stop
    for gathering in gatherings:
        gathering.finish()
    return gatherings


@final
class Gathering:
    """A batch under way: its draws go to an accumulator, and are then let go.

    Parameters
    ----------
    reading : Reading
        Where the draws come from.
    accumulator : Accumulator
        What takes them in.
    precision : Tensor, optional
        tau of a regression.

    Attributes
    ----------
    found : FoundMoments or None
        What is known beside the draws; after :meth:`finish`.
    """

    def __init__(
        self,
        reading: Reading,
        accumulator: Accumulator,
        precision: Tensor | None = None,
    ) -> None:
        self.accumulator = accumulator
        self.found: FoundMoments | None = None
        self._reading: Reading | None = reading
        self._precision = precision

    def take(self, numbers: range) -> Iterator[int]:
        """Take in these draws, and say of each block how many it held."""
        assert self._reading is not None
        for block in _blocks(self._reading.draws(numbers)):
            self.accumulator.add(block)
            yield len(block)

    def relative_error(self) -> float:
        """The worst Monte Carlo error so far, relative to the predictive spread."""
        own = None
        if self._reading is not None and self._precision is not None:
            own = self._reading.relative_error(self._precision)
        return self.accumulator.relative_error() if own is None else own

    def finish(self) -> None:
        """Let go of all that drawing needs."""
        if self._reading is not None:
            self.found = self._reading.moments()
            self._reading = None


def _blocks(draws: Iterator[Tensor]) -> Iterator[Tensor]:
    """Several draws at a time: (draws, batch, *event)."""
    block: list[Tensor] = []
    for tensor in draws:
        block.append(tensor.clone())
        if len(block) * tensor.numel() >= _BLOCK or len(block) == 256:
            yield torch.stack(block)
            block = []
    if block:
        yield torch.stack(block)
