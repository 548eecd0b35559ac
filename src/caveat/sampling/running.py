"""Running a copy of a model once, below or above autograd."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from caveat.sampling.compiler import compiler_aside
from caveat.sampling.copying import ModelCopy
from caveat.sampling.dispatch import below_autograd
from caveat.sampling.guard import Guard
from caveat.sampling.host import seeded_host_generators
from caveat.sampling.inputs import Batch
from caveat.sampling.passes import Omega, Pass
from caveat.sampling.registry import registered
from caveat.sampling.rules import rule_for


@dataclass(frozen=True)
class Switches:
    """How the copy of a model is set before a pass.

    Attributes
    ----------
    on : frozenset of str
        Paths of the modules that run in training mode.
    plain : bool
        Leave off what the model itself leaves off, as in plain evaluation.
    above_autograd : bool
        Let autograd follow the pass. Slower; nothing can be recorded.
    host_generators : bool
        The model draws from Python's or numpy's global generators: seed them.
    """

    on: frozenset[str] = frozenset()
    plain: bool = False
    above_autograd: bool = False
    host_generators: bool = False

    @property
    def replayable(self) -> bool:
        """Whether a pass can be recorded, to be replayed with other noise."""
        return not self.above_autograd and not self.host_generators


def run_pass(
    model: nn.Module, batch: Batch, omega: Omega, switches: Switches, *, record: bool
) -> tuple[Any, Pass]:
    """Run ``model`` once with the noise of ``omega``, without touching it."""
    copy = ModelCopy(model, own_buffers=switches.above_autograd)
    copy.switch_on(switches.on & copy.modules.keys())
    if not switches.plain:
        _switch_registered(copy)
    run = Pass(copy.stack, omega, rule_for, record=record)
    above = switches.above_autograd
    args, kwargs = batch.arguments
    with ExitStack() as stack:
        stack.enter_context(compiler_aside())
        if switches.host_generators:
            stack.enter_context(seeded_host_generators(omega.seed, omega.draw))
        if not above:
            stack.enter_context(torch.no_grad())
            stack.enter_context(below_autograd())
        stack.enter_context(run.recorder)
        stack.enter_context(Guard(run, above_autograd=above, plain=switches.plain))
        run.started = time.perf_counter()
        output = copy.root(*args, **kwargs)
        run.finished = time.perf_counter()
    return output, run


def _switch_registered(copy: ModelCopy) -> None:
    for module in copy.modules.values():
        if (entry := registered(module)) is not None:
            entry.switch(module)
