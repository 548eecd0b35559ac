"""Several last masks for each draw of a classifier that ends in noise and a layer.

Class probabilities have no closed form over the last noise, but more of that noise is
cheap: one small product, where another draw is another pass. So the features of every
draw meet several last masks, stratified among themselves, and the average over them
stands for the draw. The draws that are kept are what they always are.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import torch
from torch import Tensor
from torch.nn.functional import linear

from caveat._strata import SLICE
from caveat._torch import below_autograd
from caveat.errors import CaveatWarning
from caveat.predictive import CategoricalPredictive, Moments, merge
from caveat.predictive.class_errors import (
    ClassErrors,
    ClassesSeen,
    relative_to_labels,
)
from caveat.predictive.late import Late
from caveat.predictive.moments import wide_dtype, working_dtype
from caveat.predictive.softmax import log_softmax
from caveat.predictive.strata import Evidences, Stratification
from caveat.predictive.tally import entropies_of
from caveat.sampling.endings import Ending, Product
from caveat.sampling.engine import Session
from caveat.sampling.gathering import Reading
from caveat.sampling.noise import NoiseSpec
from caveat.sampling.outputs import Picker
from caveat.sampling.program import Program
from caveat.sampling.replay import Replay, programs
from caveat.sampling.rewriting.slicing import sliced_before
from caveat.sampling.rewriting.uses import linear_arguments
from caveat.sampling.tape import Ref, Tape, map_refs
from caveat.sampling.ways import Way
from caveat.sampling.work import PER_NUMBER, work_of

LAST_MASKS = "last masks"
FREE, SAVED, ANY = 0.2, 1.0, math.inf  # of the work of a draw that they may cost
_FEWEST = 4  # masks a draw that are worth the trouble
_PER_CLASS = 12 * PER_NUMBER  # work of softmax and entropy, for each number
_AT_ONCE = 1 << 22  # numbers that masked weights or features may hold
_HELD = 1 << 18  # numbers; more are summed up, or made again
_SETS_KEPT = 4
_SIGMAS = 12.0
_CONTRADICTED = """Class probabilities by several last masks a draw contradict those of
the {n} draws alone, which are used instead. This should not happen: please report the
model."""


@final
@dataclass(frozen=True, eq=False)
class LastLinear:
    """The end of a tape: ``linear(features * chain(noise), weight, bias)``.

    Attributes
    ----------
    features : int
        Number of the value that the noise multiplies, (rows, units).
    weight : Tensor, shape (classes, units)
    bias : Tensor, shape (classes,), or None
    noise : NoiseSpec
        Shared by rows.
    """

    features: int
    weight: Tensor
    bias: Tensor | None
    noise: NoiseSpec
    _tape: Tape
    _product: Product
    _numbers: tuple[int, int | None]  # of weight and bias
    _constants: Mapping[int, Tensor]

    def of_batch(self, constants: Mapping[int, Tensor]) -> "LastLinear":
        """The same with the constants of a batch."""
        weight, bias = self._numbers
        found = {**self._constants, **constants}
        own = None if bias is None else found[bias].detach()
        weights = found[weight].detach()
        return replace(self, weight=weights, bias=own, _constants=found)

    def forgetful(self, handed: frozenset[int]) -> "LastLinear":
        """The same without what hangs on the batch."""
        kept = {n: c for n, c in self._constants.items() if n not in handed}
        nothing = torch.empty(0)
        tape = replace(self._tape, constants={})
        return replace(self, weight=nothing, bias=None, _tape=tape, _constants=kept)

    def factors(self, drawn: Tensor) -> Tensor:
        """What multiplies the features, of noise (draws, *shape): (draws, units)."""
        constants, value = self._constants, drawn
        for op in self._product.chain:
            given = {n: constants.get(n, value) for n in op.reads()}
            args = map_refs(given.__getitem__, op.args)
            kwargs = {k: map_refs(given.__getitem__, a) for k, a in op.kwargs.items()}
            value = op.func(*args, **kwargs)
        return value.reshape(len(drawn), -1)

    def logits(self, features: Tensor, factors: Tensor) -> Tensor:
        """Of all masks of some draws: (draws, rows, masks, classes).

        ``features`` are (draws, rows, units), ``factors`` (draws, masks, units).
        """
        weight, (n_rows, n_classes) = self.weight, (features.shape[1], len(self.weight))
        if n_rows <= n_classes:
            masked = features.unsqueeze(2) * factors.unsqueeze(1)
            return linear(masked, weight, self.bias)
        # The masks go to the weights, which are fewer than the features.
        weights = (weight * factors.unsqueeze(2)).flatten(1, 2)
        found = features @ weights.mT
        found = found.unflatten(-1, (-1, n_classes))
        return found if self.bias is None else found + self.bias

    def n_masks(self, share: float) -> int:
        """How many more masks a draw can have for this share of its work.

        Tapes of more rows are more work in all of their parts, so it does not matter
        how rows are cut into batches.
        """
        if share == ANY:
            return SLICE
        tape = self._tape
        rows, units = tape.values[self.features].shape
        each = rows * len(self.weight) * (units + _PER_CLASS)
        spare = share * sum(work_of(op, tape) for op in tape.ops)
        sliced = sliced_before(tape, self.features)
        if sliced is not None:  # units that are dropped cannot be left out any more
            spare -= 0.5 * work_of(sliced, tape)
        return int(min(SLICE, max(0.0, spare // each)))


@final
@dataclass(frozen=True, eq=False)
class FoundClasses:
    """Class probabilities of a batch, known better than by its draws alone.

    Attributes
    ----------
    probs : Tensor, shape (batch, classes)
    entropy : Tensor, shape (batch,)
        The mean of those of the draws.
    """

    probs: Tensor
    entropy: Tensor
    _seen: Late[ClassesSeen]

    @property
    def evidence(self) -> Evidences:
        """What its own rows say of how far stratifying draws helps."""
        return self._seen.value.evidence

    def errors(self, evidence: Evidences | None) -> dict[str, Tensor]:
        """Monte Carlo errors by the name of what they are of."""
        return self._seen.value.errors(evidence)

    def relative_error(self, precision: Tensor | None, evidence: Evidences) -> float:
        """Worst Monte Carlo error of a probability, over the spread of labels."""
        return relative_to_labels(self.errors(evidence)["mean"], self.probs)


class _Averages(NamedTuple):
    """Of some draws, over their last masks."""

    probs: Tensor  # shape: (draws, batch, classes)
    entropies: Tensor  # shape: (draws, batch)


@final
class _Sums:
    """Of the draws so far: few are held as they are, so that nothing need be summed."""

    def __init__(self, design: Stratification | None) -> None:
        self._held: list[_Averages] = []
        self._numbers = 0
        self._errors = ClassErrors(design)
        self._probs: Moments | None = None
        self._entropy: Tensor | float = 0.0
        self._design = design

    def add(self, new: _Averages) -> None:
        self._held.append(new)
        self._numbers += new.probs.numel()
        if self._numbers > _HELD:
            self._sum_up()

    def found(self) -> FoundClasses:
        if self._probs is None:
            probs, entropies = self._joined()
            moments, entropy = Moments.of(probs), entropies.double().mean(0)
            seen = Late(_seen, probs, entropies, moments, self._design)
            return FoundClasses(moments.mean, entropy, seen)
        self._sum_up()
        total = self._probs
        assert isinstance(self._entropy, Tensor)
        seen = Late(self._errors.seen, total)
        return FoundClasses(total.mean, self._entropy / total.count, seen)

    def _sum_up(self) -> None:
        if not self._held:
            return
        probs, entropies = self._joined()
        self._held, self._numbers = [], 0
        self._errors.add(probs, entropies)
        wide = wide_dtype(entropies.device)
        self._entropy = self._entropy + entropies.sum(0, dtype=wide)
        new = Moments.of(probs)
        self._probs = new if self._probs is None else merge(self._probs, new)

    def _joined(self) -> _Averages:
        if len(self._held) > 1:
            probs, entropies = zip(*self._held, strict=True)
            self._held = [_Averages(torch.cat(probs), torch.cat(entropies))]
        return self._held[0]


def _seen(
    probs: Tensor, entropies: Tensor, moments: Moments, design: Stratification | None
) -> ClassesSeen:
    errors = ClassErrors(design)
    errors.add(probs, entropies)
    return errors.seen(moments)


@final
class LastMasks(Reading):
    """Draws, each with several masks before the last layer."""

    def __init__(
        self,
        session: Session,
        picker: Picker,
        layer: LastLinear,
        replay: Replay,
        end: "_End",
    ) -> None:
        super().__init__(session, picker)
        self._layer = layer
        self._replay = replay
        self._n_masks = end.n_masks
        self._memo = end.memo
        again = replace(layer.noise, name=f"{layer.noise.name} again")
        self._masks = again.stream(session.seed)
        self._sums = _Sums(session.design)

    def blocks(self, numbers: range) -> Iterator[Tensor]:
        number = numbers.start
        for *leaves, features in self._drawn(numbers):
            logits = self._picker.pick_block(leaves, self._session.structure)
            self._sums.add(self._averages(number, features, logits))
            number += len(logits)
            yield logits

    def moments(self) -> FoundClasses:
        return self._sums.found()

    @property
    def sums(self) -> _Sums:
        return self._sums

    def go_on(self, sums: Any) -> bool:
        if sums is None:
            return False
        self._sums = sums
        return True

    def _drawn(self, numbers: range) -> Iterator[list[Any]]:
        """Leaves and features of some draws at a time, with the draws in front."""
        seed = self._session.seed
        if self._replay.together:
            yield from self._replay.blocks(seed, numbers)
            return
        for leaves in self._replay.leaves(seed, numbers):
            assert leaves is not None  # all draws go the same way
            yield [v.unsqueeze(0) if isinstance(v, Tensor) else v for v in leaves]

    def _noise(self, numbers: range) -> Tensor:
        """Masks by their numbers; the same are often asked for again."""
        key = (self._session.seed, numbers)
        found = self._memo.get(key)
        if found is None:
            found = self._masks(numbers)
            if found.numel() <= _HELD:
                if len(self._memo) >= _SETS_KEPT:
                    self._memo.clear()
                self._memo[key] = found
        return found

    def _averages(self, first: int, features: Tensor, logits: Tensor) -> _Averages:
        """Of draws from ``first`` on."""
        n, layer = self._n_masks, self._layer
        rows, classes = logits.shape[1:]
        size = n * (rows * classes + min(rows, classes) * features.shape[-1])
        step = max(1, _AT_ONCE // size)
        found = []
        with torch.no_grad(), below_autograd():
            for start in range(0, len(features), step):
                own = logits[start : start + step].detach()
                begin = first + start
                drawn = self._noise(range(begin * n, (begin + len(own)) * n))
                factors = layer.factors(drawn).unflatten(0, (-1, n))
                more = layer.logits(features[start : start + step], factors)
                found.append(_averaged(own, more))
        if len(found) == 1:
            return found[0]
        probs, entropies = zip(*found, strict=True)
        return _Averages(torch.cat(probs), torch.cat(entropies))


def _averaged(own: Tensor, more: Tensor) -> _Averages:
    """With the mask of each draw itself, which is as good as any."""
    logits = torch.cat([own.unsqueeze(2), more], 2)
    log_probs = log_softmax(logits.to(working_dtype(logits.dtype)))
    probs = log_probs.exp()
    return _Averages(probs.mean(2), entropies_of(probs, log_probs).mean(2))


class _End(NamedTuple):
    """What is found once of all batches that are computed alike."""

    layer: LastLinear
    n_masks: int
    program: Program
    memo: dict[Any, Tensor]  # noise of the last calls, if it is small


def last_masks_reading(
    session: Session,
    picker: Picker,
    ending: Callable[[], Ending | None],
    share: float,
) -> LastMasks | None:
    """A reading with several last masks, or None if they cannot be had.

    Parameters
    ----------
    session : Session
        The batch.
    picker : Picker
        Which output is read; it takes what the model returns as it is.
    ending : callable
        Finds the end of its tape.
    share : float
        Of the work of a draw that more masks may cost.
    """
    way = session.way
    if way is None:
        return None
    memo, key = way.template.memo, (LAST_MASKS, share)
    if key not in memo:
        memo[key] = _end(session, picker, way, ending(), share)
    end: _End | None = memo[key]
    if end is None:
        return None
    replay = way.replay_of(end.program, Ref(end.layer.features))
    layer = end.layer.of_batch(way.constants)
    return LastMasks(session, picker, layer, replay, end)


def _end(
    session: Session, picker: Picker, way: Way, ending: Ending | None, share: float
) -> _End | None:
    """The end of a tape, and a program that gives what enters it, if both are good."""
    layer = None if ending is None else last_linear_of(ending)
    n_masks = 0 if layer is None else layer.n_masks(share)
    if ending is None or layer is None or n_masks < _FEWEST:
        return None
    tape = ending.tape
    tape.outputs = [*tape.outputs, Ref(layer.features)]
    for program in programs(tape, way.template.handed):
        replay = way.replay_of(program, Ref(layer.features))
        if session.agrees(replay) and _repeats_a_draw(session, picker, layer, replay):
            return _End(layer.forgetful(way.template.handed), n_masks, program, {})
    return None


def last_linear_of(ending: Ending) -> LastLinear | None:
    """The end of a tape, if it is one mask for all rows and then the layer."""
    tape = ending.tape
    arguments = linear_arguments(ending.linear, tape)
    if arguments is None or ending.before or ending.after:
        return None
    _, weight, bias = arguments
    for product in ending.products:
        noise, shape = tape.noises[product.noise], tape.values[product.features].shape
        if product.features in tape.constants or type(noise) is not NoiseSpec:
            continue
        if len(shape) != 2 or noise.shape not in ((shape[1],), (1, shape[1])):
            continue
        nothing, numbers = torch.empty(0), (weight, bias)
        # The sizes are those of the tape; what it holds of the batch is not kept.
        return LastLinear(
            *(product.features, nothing, None, noise, tape, product, numbers),
            tape.constants,
        ).of_batch({})
    return None


def improved_classes(
    drawn: CategoricalPredictive,
    parts: Sequence[FoundClasses],
    evidence: Sequence[Evidences | None],
) -> CategoricalPredictive:
    """The predictive of draws, with what more last masks say of all of its batches.

    ``evidence`` is what the errors of each go by: what all batches say together or,
    if each stopped for itself, what it says alone.
    """
    probs = torch.cat([part.probs for part in parts])
    if _contradicted(probs, drawn):
        message = _CONTRADICTED.format(n=drawn.n_draws)
        warnings.warn(message, CaveatWarning, stacklevel=2)
        return drawn
    return drawn.with_averages(
        probs,
        torch.cat([part.entropy for part in parts]),
        errors=Late(_errors, parts, evidence),
        method=LAST_MASKS,
    )


def _errors(
    parts: Sequence[FoundClasses], evidence: Sequence[Evidences | None]
) -> dict[str, Tensor]:
    found = list(map(FoundClasses.errors, parts, evidence))
    return {name: torch.cat([e[name] for e in found]) for name in found[0]}


def _repeats_a_draw(
    session: Session, picker: Picker, layer: LastLinear, replay: Replay
) -> bool:
    """Whether the layer gives the logits of a draw, if it gets the mask of it."""
    found = next(replay.leaves(session.seed, range(1)))
    assert found is not None
    *leaves, features = found
    logits = picker.pick(leaves, session.structure)
    with torch.no_grad(), below_autograd():
        mask = layer.factors(layer.noise.stream(session.seed)(range(1)))
        again = layer.logits(features.unsqueeze(0), mask.unsqueeze(0))[0, :, 0]
    scale = float(logits.abs().max()) if logits.numel() else 0.0
    close = again.shape == logits.shape
    return close and torch.allclose(again, logits, rtol=1e-3, atol=1e-4 * scale)


def _contradicted(probs: Tensor, drawn: CategoricalPredictive) -> bool:
    """Whether draws cannot have had these means; by chance it does not happen."""
    if drawn.n_draws < 2 * SLICE:
        return False
    spread = (probs * (1.0 - probs)).clamp(min=1e-6) / drawn.n_draws
    gap = (drawn.probs.to(probs) - probs).square()
    return math.sqrt(float((gap / spread).max())) > _SIGMAS
