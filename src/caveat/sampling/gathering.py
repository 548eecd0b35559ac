"""The draws of all batches on their way to a predictive: kept, or summed up."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor

from caveat import _validation as check
from caveat._progress import ProgressBar
from caveat.predictive import (
    CategoricalAccumulator,
    CategoricalPredictive,
    GaussianAccumulator,
    GaussianPredictive,
)
from caveat.predictive.strata import Design
from caveat.sampling.engine import Session
from caveat.sampling.inputs import Batch
from caveat.sampling.outputs import Picker, same_shape
from caveat.sampling.shelf import Shelf
from caveat.sampling.sources import Batches

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

    def first(self, least: int = 0) -> range:
        """The first round, of at least so many; the only one, without a tolerance."""
        if self.tolerance is None:
            return range(self.n_draws)
        return range(max(least, min(_FIRST_ROUND, self.max_draws)))

    def after(self, done: int, error: float) -> range:
        """The round after ``done`` draws with this error; empty if it will do."""
        tolerance, most = self.tolerance, self.max_draws
        if tolerance is None or done >= most or error <= tolerance:
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

    def blocks(self, numbers: range) -> Iterator[Tensor]:
        """The tensor of interest, some draws at a time: (draws, batch, *event).

        A block is good until the next is asked for.
        """
        structure, first, number = self._session.structure, None, numbers.start
        for leaves in self._session.blocks(numbers):
            tensor = self._picker.pick_block(leaves, structure)
            first = same_shape(tensor[0], first, number)
            number += len(tensor)
            yield tensor

    @property
    def design(self) -> Design | None:
        """How the draws are stratified."""
        return self._session.design

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


class Part(NamedTuple):
    """What is left of a batch when it is done.

    Attributes
    ----------
    n_draws : int
        Its draws.
    result : Predictive or None
        What they say; None if the draws themselves are kept on a shelf.
    found : FoundMoments or None
        What is known beside them.
    design : Design or None
        How they were stratified.
    """

    n_draws: int
    result: GaussianPredictive | CategoricalPredictive | None
    found: FoundMoments | None
    design: Design | None


@dataclass(frozen=True)
class Gathering:
    """Draws of batches on their way, one batch at a time: nothing else stays.

    Attributes
    ----------
    read : callable
        Begins with a batch.
    rounds : Rounds
        How many draws.
    accumulator : callable
        Makes what takes in the draws of a batch.
    precision : Tensor or None
        tau of a regression.
    shelf : Shelf or None
        Where draws are put that are to be kept.
    bar : ProgressBar
        Is told of each draw.
    """

    read: Callable[[Batch], Reading]
    rounds: Rounds
    accumulator: Callable[[Design | None], Accumulator]
    bar: ProgressBar
    precision: Tensor | None = None
    shelf: Shelf | None = None

    def gather(self, source: Batches) -> list[Part]:
        """All batches of a source.

        They get the same number of draws, for the worst error of all to be below the
        tolerance, so that it does not matter how rows are cut into batches. But a
        stream passes only once: there each batch has as many as it needs itself. If
        its draws are kept, they must be as many, so then its inputs are kept, too.
        """
        passing = source.passes_once and self.rounds.tolerance is not None
        held: list[Batch] = []
        parts: list[Part] = []
        for batch in source:
            least = 0 if self.shelf is None and passing else _most(parts)
            parts.append(self.part(len(parts), batch, least))
            if passing and self.shelf is not None:
                held.append(batch)
        if passing and self.shelf is None:
            return parts
        while any(part.n_draws < _most(parts) for part in parts):
            for number, batch in enumerate(held or source):
                if parts[number].n_draws < _most(parts):
                    parts[number] = self.part(number, batch, _most(parts))
        return parts

    def part(self, number: int, batch: Batch, least: int = 0) -> Part:
        """One batch, with at least so many draws."""
        reading = self.read(batch)
        counting = self.shelf is None or self.rounds.tolerance is not None
        accumulator = self.accumulator(reading.design) if counting else None
        numbers = self.rounds.first(least)
        while numbers:
            done = numbers.stop
            draws = self._told(self._shelved(number, numbers, reading))
            if accumulator is None:
                for _ in draws:
                    pass
                break
            for block in _large(draws):
                accumulator.add(block)
            numbers = self.rounds.after(done, self._error(reading, accumulator))
        summed = accumulator is not None and self.shelf is None
        result = accumulator.result() if accumulator is not None and summed else None
        return Part(done, result, reading.moments(), reading.design)

    def _shelved(
        self, batch: int, numbers: range, reading: Reading
    ) -> Iterator[Tensor]:
        first = numbers.start
        for block in reading.blocks(numbers):
            if self.shelf is not None:
                self.shelf.put(batch, first, block)
            first += len(block)
            yield block

    def _told(self, draws: Iterator[Tensor]) -> Iterator[Tensor]:
        for block in draws:
            yield block
            self.bar.advance(len(block))

    def _error(self, reading: Reading, accumulator: Accumulator) -> float:
        """The worst Monte Carlo error so far, relative to the predictive spread."""
        own = None
        if self.precision is not None:
            own = reading.relative_error(self.precision)
        return accumulator.relative_error() if own is None else own


def _most(parts: Sequence[Part]) -> int:
    return max((part.n_draws for part in parts), default=0)


def _large(blocks: Iterator[Tensor]) -> Iterator[Tensor]:
    """Blocks of draws joined to larger ones."""
    held: list[Tensor] = []
    for block in blocks:
        held.append(block.clone())
        draws = sum(map(len, held))
        if draws * block[0].numel() >= _BLOCK or draws >= 256:
            yield torch.cat(held)
            held = []
    if held:
        yield torch.cat(held)
