"""All draws of a model on one batch.

A :class:`Session` runs the model once, which is its first draw, and replays the tape
of that pass for the others. When a drawn value decided what the model's Python code
did, or the model uses autograd itself, there is nothing to replay: then every draw
runs the model, with the same noise and so the same numbers, only slower.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from caveat._torch import pytree
from caveat.errors import CaveatError, InputTypeError, NoStochasticSiteError
from caveat.sampling.guard import AutogradInside
from caveat.sampling.inputs import Batch
from caveat.sampling.passes import DrawOmega, Pass
from caveat.sampling.plans import Plan, plan_for, widened
from caveat.sampling.program import Program
from caveat.sampling.rewriting import optimised
from caveat.sampling.running import Switches, run_pass
from caveat.sampling.tape import Ref, Tape

_UNUSED = """{name} draws noise, but none of it reaches its output: all draws would be
identical. caveat.audit(model, x) lists where it is drawn; look for a result that is
not used, or a detour through numpy."""

_NO_TENSOR = """The model must return a tensor or a structure with one. Got {kinds}."""


@dataclass(frozen=True)
class Sampler:
    """A model, and how its noise is addressed."""

    model: nn.Module
    seed: int
    shared: bool
    stratified: bool = False

    def session(self, batch: Batch) -> "Session":
        """Ready to draw for ``batch``."""
        return Session(self, batch, plan_for(self.model, batch))

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
        return (output, run) if plan.covers(run) else None

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

    Attributes
    ----------
    structure : pytree.TreeSpec
        How the leaves of an output make up what the model returns.
    tape : Tape or None
        The noisy part of the recorded pass; None if it cannot be replayed.
    """

    def __init__(self, sampler: Sampler, batch: Batch, plan: Plan) -> None:
        self._sampler = sampler
        self._batch = batch
        self._plan = plan
        self._first = 0
        output, run = self._run(0, record=True)
        leaves, self.structure = pytree.tree_flatten(output)
        self._leaves = leaves
        self.tape: Tape | None = None
        self._replay = self._prepare_replay(run)

    @property
    def rows_mix(self) -> bool:
        """Whether rows influence each other, so that the batch must stay whole."""
        return self._plan.rows_mix

    @property
    def seed(self) -> int:
        """Of all draws."""
        return self._sampler.seed

    @property
    def first_leaves(self) -> list[Any]:
        """The leaves of the recorded pass."""
        return self._leaves

    def watching(self, tape: Tape) -> "Replay | None":
        """Draws of the tape of this pass with outputs of its own after the model's."""
        more = [None] * (len(tape.outputs) - len(self._leaves))
        replay = Replay(optimised(tape), [*self._leaves, *more])
        return replay if self._trusts(replay) else None

    def outputs(self, draws: range) -> Iterator[list[Any]]:
        """The leaves of the model's output for each draw.

        A tensor is only good until the next draw is asked for.
        """
        replay = self._replay
        for draw in draws:
            if draw == self._first:
                yield self._leaves
            elif replay is None:
                yield pytree.tree_leaves(self._run(draw, record=False)[0])
            else:
                yield from replay.leaves(
                    self._sampler.seed, draws[draw - draws.start :]
                )
                return

    def _run(self, draw: int, *, record: bool) -> tuple[Any, Pass]:
        output, run, self._plan = self._sampler.planned_pass(
            self._plan, self._batch, draw, record=record
        )
        return output, run

    def _prepare_replay(self, run: Pass) -> "Replay | None":
        if run.recorder.escape or not self._plan.switches.replayable:
            return None
        tape = run.recorder.finish(self._leaves)
        if not any(isinstance(out, Tensor) for out in self._leaves):
            kinds = ", ".join(sorted({type(v).__name__ for v in self._leaves}))
            raise InputTypeError(_NO_TENSOR.format(kinds=kinds or "nothing"))
        if not any(isinstance(out, Ref) for out in tape.outputs):
            raise NoStochasticSiteError(
                _UNUSED.format(name=type(self._sampler.model).__name__)
            )
        for candidate in (optimised(tape), tape):
            replay = Replay(candidate, self._leaves)
            if self._trusts(replay):
                self.tape = tape
                return replay
        return None

    def _trusts(self, replay: "Replay") -> bool:
        """Compare a program with the model once; its source stands for its logic."""
        verdicts = self._plan.verdicts
        if replay.source not in verdicts:
            agrees = replay.agrees(self._sampler.seed, self._first)
            verdicts[replay.source] = agrees
        return verdicts[replay.source]


class Replay:
    """The tape of a pass as a source of draws.

    ``leaves`` are those of the recorded pass; None where it has none to compare with.
    """

    def __init__(self, tape: Tape, leaves: list[Any]) -> None:
        self._program = Program(tape)
        self._clean = leaves
        self._noisy = [i for i, out in enumerate(tape.outputs) if isinstance(out, Ref)]

    def leaves(self, seed: int, draws: range) -> Iterator[list[Any]]:
        for noisy in self._program.outputs(seed, draws):
            leaves = list(self._clean)
            for position, tensor in zip(self._noisy, noisy, strict=True):
                leaves[position] = tensor
            yield leaves

    @property
    def source(self) -> str:
        return self._program.source

    def agrees(self, seed: int, draw: int) -> bool:
        """Whether replaying the recorded draw gives what the model gave."""
        try:
            again = next(self.leaves(seed, range(draw, draw + 1)))
        except CaveatError:
            raise
        except (RuntimeError, TypeError, ValueError, IndexError):
            return False
        known = [i for i in self._noisy if self._clean[i] is not None]
        return all(_close(again[i], self._clean[i]) for i in known)


def _close(left: Tensor, right: Tensor) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if not left.is_floating_point():
        return bool((left != right).float().mean() < 0.01) if left.numel() else True
    tolerance = max(1e-4, 4 * torch.finfo(left.dtype).eps ** 0.5)
    finite = right[torch.isfinite(right)]
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    return torch.allclose(
        left, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True
    )
