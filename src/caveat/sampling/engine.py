"""All draws of a model on one batch.

A :class:`Session` runs the model once, which is its first draw, and replays the tape
of that pass for the others. When a drawn value decided what the model's Python code
did, or the model uses autograd itself, there is nothing to replay: then every draw
runs the model, with the same noise and so the same numbers, only slower.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from caveat._torch import storage_address, takes_apart
from caveat.errors import (
    InputTypeError,
    NoStochasticSiteError,
    ShapeError,
    UnsupportedModelError,
)
from caveat.predictive.strata import Stratification
from caveat.sampling.checks import Departed
from caveat.sampling.fingerprint import Survey, survey
from caveat.sampling.guard import AutogradInside
from caveat.sampling.inputs import Batch, key_of
from caveat.sampling.noise import Layout
from caveat.sampling.outputs import Picker
from caveat.sampling.passes import DrawOmega, Pass
from caveat.sampling.plans import Plan, plan_for, warn_of_misfits, widened
from caveat.sampling.program import Program, cut
from caveat.sampling.replay import Replay, same_leaves
from caveat.sampling.rewriting import optimised
from caveat.sampling.running import Switches, run_pass
from caveat.sampling.sparse import is_sparse
from caveat.sampling.store import MOST_WAYS, BatchKind, Known
from caveat.sampling.tape import Tape
from caveat.sampling.templates import template_of
from caveat.sampling.trees import Structure, flatten
from caveat.sampling.ways import Way

_UNUSED = """{name} draws noise, but none of it reaches its output: all draws would be
identical. caveat.audit(model, x) lists where it is drawn; look for a result that is
not used, or a detour through numpy."""

_NOT_DENSE = """The model returns a {kind}, whose draws cannot be stacked. Return
a plain tensor: .to_dense() of a sparse one, .to_padded_tensor(0.0) of a nested one,
.full_tensor() of a distributed one."""

_AT_ONCE = 64  # draws that are computed along one way, then along another

_CHANGING = """Draw {number} of {name} is made up in another way ({other}) than those
before ({first}): what is returned hangs on the noise, and such draws cannot be put
together. Return the same names and places in every pass, NaN where one is empty."""

_NO_TENSOR = """The model must return a tensor or a structure with one. Got {kinds}."""


@dataclass(frozen=True)
class Sampler:
    """A model, and how its noise is addressed."""

    model: nn.Module
    seed: int
    shared: bool
    stratified: bool = False
    # The last survey stays good as long as it is kept, and true.
    _kept: list[Survey] = field(default_factory=list, init=False, compare=False)

    def survey(self) -> Survey:
        """What the model looks like now."""
        seen = survey(self.model)
        self._kept[:] = [seen]
        return seen

    def session(self, batch: Batch) -> "Session":
        """Ready to draw for ``batch``."""
        seen = self.survey()
        return Session(self, batch, plan_for(self.model, batch, seen), seen.tensors)

    def one_pass(self, batch: Batch, draw: int, *, above_autograd: bool) -> Any:
        """The output of a single draw, with gradients if asked for."""
        plan = plan_for(self.model, batch)
        omega = self.omega(plan, batch, draw)
        above = above_autograd or plan.switches.above_autograd
        switches = replace(plan.switches, above_autograd=above)
        found = self._within(plan, batch, omega, switches, record=False)
        if found and (not above_autograd or found[1].names >= plan.names):
            return found[0]
        # The model went where the plan has not been, or has scripted dropout, which
        # above autograd is only seen while its owner's flag is on.
        plan = widened(self.model, batch, plan, omega)
        owners = plan.switches.on | {site.path for site in plan.sites}
        on = owners if above_autograd else plan.switches.on
        above = above_autograd or plan.switches.above_autograd
        switches = replace(plan.switches, on=on, above_autograd=above)
        omega = self.omega(plan, batch, draw)
        return run_pass(self.model, batch, omega, switches, record=False)[0]

    def planned_pass(
        self, plan: Plan, batch: Batch, draw: int, *, record: bool
    ) -> tuple[Any, Pass, Plan]:
        """A pass without gradients; with the plan, wider if it had to be."""
        omega = self.omega(plan, batch, draw)
        with torch.no_grad():
            found = self._within(plan, batch, omega, plan.switches, record=record)
            if found is None:
                plan = widened(self.model, batch, plan, omega)
                omega = self.omega(plan, batch, draw)
                record = record and plan.switches.replayable
                found = run_pass(self.model, batch, omega, plan.switches, record=record)
        return *found, plan

    def _within(
        self,
        plan: Plan,
        batch: Batch,
        omega: DrawOmega,
        switches: Switches,
        *,
        record: bool,
    ) -> tuple[Any, Pass] | None:
        """A pass, if it goes only where the plan has been."""
        record = record and switches.replayable
        try:
            output, run = run_pass(self.model, batch, omega, switches, record=record)
        except AutogradInside:
            return None
        if not plan.covers(run):
            return None
        warn_of_misfits(self.model, plan, omega.misfits)
        return output, run

    def omega(self, plan: Plan, batch: Batch, draw: int) -> DrawOmega:
        """Draw number ``draw`` of ω for this batch."""
        return DrawOmega(
            self.seed,
            draw,
            plan.layouts,
            batch.rows,
            batch.first_row,
            self.shared,
            self.stratified,
            plan.tokens.axes,
            plan.tokens.length(batch),
        )


class Session:
    """The draws of one batch.

    The model may go different ways in different draws. Every way that was met is
    replayed from then on; a draw that goes yet another one runs the model.

    Attributes
    ----------
    structure : Structure
        How the leaves of an output make up what the model returns.
    """

    structure: Any

    def __init__(
        self, sampler: Sampler, batch: Batch, plan: Plan, tensors: list[Tensor]
    ) -> None:
        self._begin(sampler, batch, plan, tensors)
        self._kind = plan.templates.kind(_kind_of(sampler, batch, plan))
        # Ways of earlier batches that this one might go, too.
        self._known = self._kind.known_for(tensors)
        if not self._recall():
            self._run_model(0)

    def _begin(
        self, sampler: Sampler, batch: Batch, plan: Plan, tensors: list[Tensor]
    ) -> None:
        self._sampler = sampler
        self._batch = batch
        self._plan = plan
        self._ways: list[Way] = []
        self._lost = 0  # draws that went no way that is known
        self.structure = None
        self._modelled: tuple[int, list[Any]] | None = None
        self._tensors = tensors

    @classmethod
    def recalled(
        cls,
        sampler: Sampler,
        batch: Batch,
        plan: Plan,
        tensors: list[Tensor],
        kind: BatchKind,
        known: Known,
    ) -> "Session | None":
        """A session that goes a known way; None if the batch does not go it."""
        session = cls.__new__(cls)
        session._begin(sampler, batch, plan, tensors)
        session._kind, session._known = kind, [known]
        return session if session._recall() else None

    @property
    def recalled_way(self) -> tuple[Batch, Plan, BatchKind, Known] | None:
        """What :meth:`recalled` needs, if all draws go a way that has proved itself."""
        way = self.way
        if way is None or not way.replay.together:
            return None
        for known in self._kind.known:
            if known.template is way.template and known.proved:
                return self._batch, self._plan, self._kind, known
        return None

    @property
    def rows_mix(self) -> bool:
        """Whether rows influence each other, so that the batch must stay whole."""
        return self._plan.rows_mix

    @property
    def output_layouts(self) -> tuple[Layout | None, ...]:
        """Where the rows lie in each leaf of an output, as far as it is known."""
        return self._plan.outputs

    @property
    def seed(self) -> int:
        """Of all draws."""
        return self._sampler.seed

    @property
    def tape(self) -> Tape | None:
        """The noisy part of a pass; None if not all draws are replays of it."""
        way = self.way
        return None if way is None else way.tape()

    @property
    def way(self) -> Way | None:
        """The way that all draws go, if there is one that can be replayed."""
        if len(self._ways) != 1 or not self._ways[0].template.certain:
            return None
        return self._ways[0]

    @property
    def design(self) -> Stratification | None:
        """How the draws are stratified; None if they are independent."""
        if not self._sampler.stratified:
            return None
        return self._plan.stratification

    def leaf_alone(self, picker: Picker) -> int | None:
        """Which leaf is read, if it is one of several, and no other is looked at."""
        way = self.way
        if way is None or way.template.n_noisy < 2:
            return None
        return picker.leaf_alone(way.template.leaves(way.constants), self.structure)

    @property
    def first_leaves(self) -> list[Any]:
        """The leaves of the first draw."""
        return next(self.outputs(range(1)))

    def once(self, question: str, find: Callable[[], bool]) -> bool:
        """``find()``, asked once of all batches that are replayed in the same way."""
        way = self.way
        assert way is not None
        key = f"{question}\n{way.replay.source}"
        if key not in self._plan.verdicts:
            self._plan.verdicts[key] = find()
        return self._plan.verdicts[key]

    def watching(self, tape: Tape) -> Replay | None:
        """Draws of the tape of this pass with outputs of its own after the model's."""
        replay = Replay(Program(optimised(tape), frozenset()), {}, tape.outputs)
        return replay if self.agrees(replay) else None

    def outputs(self, draws: range, only: int | None = None) -> Iterator[list[Any]]:
        """The leaves of the model's output for each draw.

        A tensor is only good until the next draw is asked for. If ``only`` one leaf is
        read, others may be empty.
        """
        if self._modelled is not None and draws.start == self._modelled[0] and draws:
            yield self._modelled[1]
            draws = draws[1:]
        if self.way is not None:
            for leaves in self._replay(self.way, only).leaves(self.seed, draws):
                assert leaves is not None  # no other way is known, nor to be expected
                yield leaves
            return
        for part in cut(draws, _AT_ONCE):
            yield from self._by_ways(part)

    def _by_ways(self, draws: range) -> list[list[Any]]:
        """Some draws, each along a way that it goes."""
        found: dict[int, list[Any]] = {}
        tried: list[Way] = []
        while missing := [draw for draw in draws if draw not in found]:
            new = [way for way in self._ways if way not in tried]
            if not new and not self._recall(missing[0]):
                found[missing[0]] = self._run_model(missing[0])
            for way in new:
                tried.append(way)
                replayed = way.replay.some(self.seed, draws, without=found.keys())
                found.update({d: v for d, v in replayed if v is not None})
        return [found[draw] for draw in draws]

    def blocks(self, draws: range, only: int | None = None) -> Iterator[list[Any]]:
        """As ``outputs``, some draws at a time: tensors have an axis of draws."""
        way = self.way
        if way is not None and way.replay.together:
            yield from self._replay(way, only).blocks(self.seed, draws)
            return
        if self._are_small():
            for part in cut(draws, _AT_ONCE):
                yield from _stacked(list(self.outputs(part)))
            return
        for leaves in self.outputs(draws, only):
            yield _as_block(leaves)

    def _replay(self, way: Way, only: int | None) -> Replay:
        """Draws of all leaves, or of one alone if that is less work."""
        alone = None if only is None else way.alone(only, self.agrees)
        return way.replay if alone is None else alone

    def _are_small(self) -> bool:
        """Whether draws that go several ways are small enough to be held together."""
        return bool(self._ways) and all(way.replay.together for way in self._ways)

    def _recall(self, draw: int = 0) -> bool:
        """Take up a way of an earlier batch of this kind that is known to be safe."""
        for known in self._known:
            if known.is_safe_for(self._batch) and (way := self._bound(known)):
                self._known.remove(known)
                self._ways.append(way)
                self._check_structure(known.template.structure, draw)
                return True
        return False

    def _check_structure(self, structure: Structure, draw: int) -> None:
        """Refuse outputs that are made up in another way than those before."""
        if self.structure is None:
            self.structure = structure
        elif structure.key != self.structure.key:
            name = type(self._sampler.model).__name__
            kinds = {"first": self.structure, "other": structure}
            raise ShapeError(_CHANGING.format(number=draw, name=name, **kinds))

    def _judge(self, draw: int, leaves: list[Any]) -> bool:
        """Whether a known way gives what the model gave; one that does not is no good.

        One that goes another way in this draw is left for another time.
        """
        for known in list(self._known):
            way = self._bound(known)
            again = None if way is None else way.again(self.seed, draw)
            if way is None or again is None:
                continue
            self._known.remove(known)
            if same_leaves(again, leaves):
                known.proved = True
                self._ways.insert(0, way)
                return True
            self._kind.forget(known)
        return False

    def _bound(self, known: Known) -> Way | None:
        try:
            constants = known.template.constants_for(self._batch)
        except (Departed, RuntimeError, TypeError, ValueError, IndexError):
            return None
        return Way(known.template, constants)

    def _run_model(self, draw: int) -> list[Any]:
        """The leaves of a draw, by the model itself; its way is noted."""
        record = self._lost < MOST_WAYS
        output, run, self._plan = self._sampler.planned_pass(
            self._plan, self._batch, draw, record=record
        )
        leaves, structure = flatten(output)
        _require_dense(leaves)
        self._check_structure(structure, draw)
        plain = [v.detach() if isinstance(v, Tensor) else v for v in leaves]
        self._modelled = draw, plain
        self._lost += 1
        if self._lost > 4 * MOST_WAYS:
            self._ways.clear()  # hardly any draw goes a known way
        replayable = (
            not run.recorder.transcript.escape and self._plan.switches.replayable
        )
        if record and replayable and not self._judge(draw, plain):
            self._note_way(run, leaves, structure)
        return plain

    def _note_way(self, run: Pass, leaves: list[Any], structure: Any) -> None:
        if not any(isinstance(out, Tensor) for out in leaves):
            kinds = ", ".join(sorted({type(v).__name__ for v in leaves}))
            raise InputTypeError(_NO_TENSOR.format(kinds=kinds or "nothing"))
        template, constants = template_of(run.recorder, leaves, structure, self._batch)
        if template.certain and not template.n_noisy:
            name = type(self._sampler.model).__name__
            raise NoStochasticSiteError(_UNUSED.format(name=name))
        way = Way(template, constants)
        if not way.settle(self.agrees):
            return
        self._ways.insert(0, way)
        self._kind.note(template, self._batch, self._tensors)

    def agrees(self, replay: Replay, only: int | None = None) -> bool:
        """Whether a replay gives what the model gave; asked once for its source."""
        verdicts = self._plan.verdicts
        if replay.source not in verdicts:
            draw, leaves = self._modelled or (0, self.first_leaves)
            if only is not None:
                leaves = [v if i == only else None for i, v in enumerate(leaves)]
            verdicts[replay.source] = replay.agrees(self.seed, draw, leaves)
        return verdicts[replay.source]


def _as_block(leaves: list[Any]) -> list[Any]:
    """The leaves of a draw, with an axis of draws in front."""
    return [v.unsqueeze(0) if isinstance(v, Tensor) else v for v in leaves]


def _stacked(draws: list[list[Any]]) -> Iterator[list[Any]]:
    """The leaves of some draws as one block; as blocks of one, if they differ."""
    if len({tuple(map(_look, leaves)) for leaves in draws}) > 1:
        yield from map(_as_block, draws)
        return
    columns = zip(*draws, strict=True)
    yield [torch.stack(c) if isinstance(c[0], Tensor) else c[0] for c in columns]


def _look(leaf: Any) -> Any:
    return (leaf.shape, leaf.dtype) if isinstance(leaf, Tensor) else None


def _require_dense(leaves: list[Any]) -> None:
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            continue
        if is_sparse(leaf) or leaf.is_nested or takes_apart(type(leaf)):
            kind = f"{type(leaf).__name__} of layout {leaf.layout}"
            raise UnsupportedModelError(_NOT_DENSE.format(kind=kind))


def _kind_of(sampler: Sampler, batch: Batch, plan: Plan) -> Any:
    """What batches must share for one to be computed as the other was."""
    storages: dict[int, int] = {}
    leaves = tuple(
        _leaf_kind(leaf, storages.setdefault(storage_address(leaf), number))
        if isinstance(leaf, Tensor)
        else key_of(leaf)
        for number, leaf in enumerate(batch.leaves)
    )
    # Noise on a tape begins at these rows and tokens.
    starts = (sampler.shared or batch.first_row, plan.tokens.length(batch))
    noise = (sampler.shared, sampler.stratified, *starts)
    rows = (batch.rows, batch.axis, batch.batched)
    return batch.structure.key, leaves, rows, noise, ambient()


def _leaf_kind(tensor: Tensor, alias: int) -> Any:
    kind = (tensor.dtype, tensor.device, tensor.layout)
    if is_sparse(tensor) or tensor.is_nested:
        return kind, alias  # what is recorded with one is good for no other batch
    return tensor.shape, tensor.stride(), kind, alias


def ambient() -> Any:
    """Settings of torch that change what operations do."""
    casts = tuple(
        torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
        for kind in ("cpu", "cuda")
    )
    return torch.get_default_dtype(), casts
