"""The draws of all batches on their way to a predictive: kept, or summed up."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, final

import torch
from torch import Tensor

from caveat import _validation as check
from caveat._memory import give_back
from caveat._progress import ProgressBar
from caveat._torch import storage_address
from caveat.errors import CaveatWarning, ShapeError
from caveat.predictive import (
    CategoricalAccumulator,
    CategoricalPredictive,
    GaussianAccumulator,
    GaussianPredictive,
)
from caveat.predictive.accumulators import CategoricalPending, GaussianPending
from caveat.predictive.strata import Evidences, Seen, Stratification, pooled
from caveat.sampling.engine import Session
from caveat.sampling.inputs import Batch
from caveat.sampling.outputs import Picker, same_shape
from caveat.sampling.plans import levels_to_the_user
from caveat.sampling.shelf import NO_ROWS, Shelf
from caveat.sampling.sources import Batches
from caveat.sampling.sparse import is_sparse

MAX_DRAWS = 10_000
_FIRST_ROUND = 32  # draws before a tolerance is first looked at
_TIDY_EVERY = 4  # batches
_BLOCK = 1 << 20  # numbers gathered before they are summarised
_MISSED = """tolerance={tolerance:g} was not reached: after max_draws={done} the worst
Monte Carlo error is {worst:.2g} of the predictive spread. Raise max_draws, or ask for
less."""

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

    def first(self) -> range:
        """The first round; the only one, without a tolerance."""
        if self.tolerance is None:
            return range(self.n_draws)
        return range(min(_FIRST_ROUND, self.max_draws))

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
    seen: Seen | None  # of what was sampled of the mean; None if nothing was
    slope: Tensor | None  # by which errors of it become errors of the mean
    covariance: Tensor | None  # shape: (batch, D, D)
    excess: float = 0.0  # kurtosis of the noise, to compare with draws

    @property
    def evidence(self) -> Evidences:
        """What its own rows say of how far stratifying draws helps."""
        return (None if self.seen is None else self.seen.evidence,)

    def mean_error(self, evidence: Evidences | None) -> Tensor:
        """Of shape (batch, *event); ``evidence`` is that of all batches."""
        if self.seen is None:
            return torch.zeros_like(self.mean)
        error = self.seen.mean_error(None if evidence is None else evidence[0])
        return error.view_as(self.mean) if self.slope is None else error * self.slope

    def relative_error(self, precision: Any, evidence: Evidences) -> float:
        """Largest Monte Carlo error of a mean over the predictive std."""
        noise = 1.0 / check.precision_for(precision, self.mean)
        error = self.mean_error(evidence)
        return float((error / (self.variance + noise).sqrt()).max())


class Found(Protocol):
    """What is known of a batch better than by its draws alone."""

    @property
    def evidence(self) -> Evidences:
        """What its own rows say of how far stratifying draws helps."""

    def relative_error(self, precision: Any, evidence: Evidences) -> float:
        """The worst Monte Carlo error, relative to the predictive spread."""


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
        only = self._session.leaf_alone(self._picker)
        for leaves in self._session.blocks(numbers, only):
            tensor = self._picker.pick_block(leaves, structure)
            first = same_shape(tensor[0], first, number)
            number += len(tensor)
            yield tensor

    def require_rows(self) -> None:
        """Refuse to read what has no rows, as batches of it cannot be joined."""
        layouts, leaves = self._session.output_layouts, self._session.first_leaves
        if len(layouts) != len(leaves):
            return
        read = storage_address(self._picker.pick(leaves, self._session.structure))
        for leaf, layout in zip(leaves, layouts, strict=True):
            if isinstance(leaf, Tensor) and layout is None and leaf.numel():
                if not is_sparse(leaf) and storage_address(leaf) == read:
                    raise ShapeError(NO_ROWS.format(shape=tuple(leaf.shape)))

    @property
    def design(self) -> Stratification | None:
        """How the draws are stratified."""
        return self._session.design

    @abstractmethod
    def moments(self) -> Found | None:
        """What is known better, or None: then what the draws say does."""

    @property
    def sums(self) -> Any:
        """What was summed up so far, for :meth:`go_on`; None if that is nothing."""
        return None

    def go_on(self, sums: Any) -> bool:
        """Begin where another reading of the same batch was; False if it cannot."""
        return sums is None


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
    found : Found or None
        What is known beside them.
    design : Stratification or None
        How they were stratified.
    """

    n_draws: int
    result: GaussianPredictive | CategoricalPredictive | None
    found: Found | None
    design: Stratification | None
    evidence: Evidences | None = None  # of all batches; None if there is but one


class _Sums(NamedTuple):
    """What is known of a batch while others are read."""

    n_draws: int
    accumulator: Accumulator | None
    pending: GaussianPending | CategoricalPending | None  # its end, if it is known
    found: Found | None
    beside: Any  # sums of closed forms
    design: Stratification | None
    shelved: Evidences | None = None  # of draws on the shelf, which are summed anew

    @property
    def evidence(self) -> Evidences:
        """Of its own rows, for what its errors are of."""
        if self.found is not None:
            return self.found.evidence
        if self.shelved is not None:
            return self.shelved
        if self.pending is not None:
            return self.pending.evidence
        return (None,) if self.accumulator is None else self.accumulator.evidence


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
    precision : float, Tensor or None
        tau of a regression.
    shelf : Shelf or None
        Where draws are put that are to be kept.
    bar : ProgressBar
        Is told of each draw.
    """

    read: Callable[[Batch], Reading]
    rounds: Rounds
    accumulator: Callable[[Stratification | None], Accumulator]
    bar: ProgressBar
    precision: float | Tensor | None = None
    shelf: Shelf | None = None

    def gather(self, source: Batches) -> list[Part]:
        """All batches of a source.

        They get the same number of draws, for the worst error of all to be below the
        tolerance. How far stratifying draws helps is judged by all batches together, so
        that it does not matter how rows are cut into batches; between rounds only sums
        are kept of a batch, which is begun again if it needs more draws. But a stream
        passes only once: there each batch has as many as it needs itself, and stands
        alone. If its draws are kept, they must be as many, so then its inputs are kept,
        too.
        """
        passing = source.passes_once and self.rounds.tolerance is not None
        if not source.several or (passing and self.shelf is None):
            return [self._alone(n, batch) for n, batch in enumerate(source)]
        held: list[Batch] = []
        parts: list[_Sums] = []
        numbers = self.rounds.first()
        for batch in source:
            reading = self.read(batch)
            sums = self._summed(len(parts), reading, numbers)
            parts.append(self._lightened(len(parts), sums))
            if passing:
                held.append(batch)
            del batch, reading, sums
        while numbers := self._next(parts):
            for number, batch in enumerate(held or source):
                sums = self._more(number, batch, parts[number], numbers)
                parts[number] = self._lightened(number, sums)
                del batch, sums
        return self._done(parts)

    def _lightened(self, number: int, sums: _Sums) -> _Sums:
        """Without sums that can be had again from the draws that are kept."""
        _tidy(number)
        if self.shelf is None or sums.accumulator is None:
            return sums
        again = self._from_shelf(number, sums)
        return sums._replace(accumulator=None, shelved=again.evidence)

    def _from_shelf(self, number: int, sums: _Sums) -> Accumulator:
        """The sums of a batch, of its draws on the shelf."""
        assert self.shelf is not None
        accumulator = self.accumulator(sums.design)
        for block in _large(self.shelf.draws_of(number, sums.n_draws)):
            accumulator.add(block)
        return accumulator

    def _alone(self, number: int, batch: Batch) -> Part:
        """One batch, whatever the others say."""
        reading = self.read(batch)
        if self.shelf is not None and self.rounds.tolerance is None:
            return self._kept(number, reading)
        sums = self._summed(number, reading, self.rounds.first())
        while numbers := self._next([sums]):
            sums = self._summed(number, reading, numbers, sums.accumulator)
        found = self._done([sums])[0]
        _tidy(number)
        return found

    def _kept(self, number: int, reading: Reading) -> Part:
        """One batch whose draws are all there is to gather."""
        numbers = self.rounds.first()
        for _ in self._told(self._shelved(number, numbers, reading)):
            pass
        return Part(numbers.stop, None, reading.moments(), reading.design)

    def _more(self, number: int, batch: Batch, sums: _Sums, numbers: range) -> _Sums:
        """More draws of a batch that was let go."""
        reading = self.read(batch)
        if reading.go_on(sums.beside):
            return self._summed(number, reading, numbers, sums.accumulator)
        return self._summed(number, self.read(batch), range(numbers.stop))

    def _summed(
        self,
        number: int,
        reading: Reading,
        numbers: range,
        accumulator: Accumulator | None = None,
    ) -> _Sums:
        """Draws of a batch, after those that the accumulator has seen."""
        final = self.rounds.tolerance is None
        if accumulator is None and (self.shelf is None or not final):
            accumulator = self.accumulator(reading.design)
        draws = self._told(self._shelved(number, numbers, reading))
        if accumulator is None:
            for _ in draws:
                pass
        else:
            for block in _large(draws):
                accumulator.add(block)
        pending = None
        if final and accumulator is not None:
            # Its result is smaller than its sums, and there may be many batches.
            pending, accumulator = accumulator.pending(), None
        found, beside = reading.moments(), None if final else reading.sums
        done = numbers.stop
        return _Sums(done, accumulator, pending, found, beside, reading.design)

    def _next(self, parts: Sequence[_Sums]) -> range:
        """The next round of all batches; empty if their errors will do, or must."""
        done, tolerance = parts[0].n_draws, self.rounds.tolerance
        if tolerance is None:
            return range(0)
        evidence = _evidence(parts)
        worst = max(self._error(n, part, evidence) for n, part in enumerate(parts))
        numbers = self.rounds.after(done, worst)
        if not numbers and worst > tolerance:
            message = _MISSED.format(tolerance=tolerance, done=done, worst=worst)
            warnings.warn(message, CaveatWarning, stacklevel=levels_to_the_user())
        return numbers

    def _done(self, parts: Sequence[_Sums]) -> list[Part]:
        """With the errors that all batches tell together."""
        evidence = _evidence(parts)
        drawn: Evidences | None = None
        if self.shelf is None:
            # Those of the draws, which may have closed forms beside them.
            parts = [part._replace(pending=_pending(part)) for part in parts]
            known = [p.pending.evidence for p in parts if p.pending is not None]
            drawn = pooled(known)
        found = []
        for part in parts:
            result = None
            if drawn is not None and part.pending is not None:
                result = part.pending.settled(drawn)
            found.append(Part(part.n_draws, result, part.found, part.design, evidence))
        return found

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

    def _error(self, number: int, part: _Sums, evidence: Evidences) -> float:
        """The worst Monte Carlo error so far, relative to the predictive spread."""
        if part.found is not None:
            return part.found.relative_error(self.precision, evidence)
        sums = part.accumulator or self._from_shelf(number, part)
        found = sums.relative_error(evidence)
        _tidy(number)
        return found


def at_once(reading: Reading, n_draws: int) -> tuple[Part, Tensor]:
    """One batch whose draws come in one block: there is nothing to gather."""
    (block,) = reading.blocks(range(n_draws))
    draws = block.clone()
    return Part(n_draws, None, reading.moments(), reading.design), draws


def _tidy(number: int) -> None:
    """Now and then, as batches pass: what was freed lies between what stays."""
    if number % _TIDY_EVERY == _TIDY_EVERY - 1:
        give_back()


def _evidence(parts: Sequence[_Sums]) -> Evidences:
    """What all batches say together of the errors that count."""
    if len({part.found is None for part in parts}) > 1:
        # Some have closed forms, some not: each speaks of itself.
        return tuple(None for _ in parts[0].evidence)
    return pooled([part.evidence for part in parts])


def _pending(part: _Sums) -> GaussianPending | CategoricalPending | None:
    if part.pending is not None or part.accumulator is None:
        return part.pending
    return part.accumulator.pending()


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
