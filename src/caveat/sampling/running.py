"""Running a copy of a model once, below or above autograd."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from caveat._torch import (
    CompilerWanted,
    below_autograd,
    compiler_is_loaded,
    compiler_kept_out,
    load_compiler,
    without_checkpoints,
)
from caveat.sampling.copying import ModelCopy
from caveat.sampling.fingerprint import survey
from caveat.sampling.guard import Guard
from caveat.sampling.host import (
    GeneratorUse,
    marked_torch_generators,
    seeded_host_generators,
)
from caveat.sampling.inputs import Batch
from caveat.sampling.keras_layers import is_keras, own_seeds
from caveat.sampling.passes import Omega, Pass
from caveat.sampling.registry import registered
from caveat.sampling.rules import rule_for
from caveat.sampling.trees import mapped


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
        Let autograd follow the pass: a tape then holds what autograd does, too.
    gradients : bool
        The model differentiates without turning gradients on itself: turn them on.
    host_generators : bool
        The model draws from generators of Python or numpy, global ones or its own:
        seed them.
    seeds_torch : bool
        The model seeds torch's generator, or uses one of torch's from outside its
        modules: have them marked.
    """

    on: frozenset[str] = frozenset()
    plain: bool = False
    above_autograd: bool = False
    gradients: bool = False
    host_generators: bool = False
    seeds_torch: bool = False

    @property
    def replayable(self) -> bool:
        """Whether a pass can be recorded, to be replayed with other noise."""
        return not self.host_generators


def run_pass(
    model: nn.Module, batch: Batch, omega: Omega, switches: Switches, *, record: bool
) -> tuple[Any, Pass]:
    """Run ``model`` once with the noise of ``omega``, without touching it."""
    try:
        with compiler_kept_out():
            return _run_pass(model, batch, omega, switches, record=record)
    except CompilerWanted:  # by ``torch.cond``, for one: again, with it set aside
        load_compiler()
        return _run_pass(model, batch, omega, switches, record=record)


def _run_pass(
    model: nn.Module, batch: Batch, omega: Omega, switches: Switches, *, record: bool
) -> tuple[Any, Pass]:
    copy = ModelCopy(model, own_buffers=switches.above_autograd)
    copy.switch_on(switches.on & copy.modules.keys())
    if not switches.plain:
        _switch_registered(copy)
    run = Pass(copy.stack, omega, rule_for, record=record)
    above = switches.above_autograd
    marked = GeneratorUse()
    with ExitStack() as stack:
        stack.enter_context(_compiler_aside())
        stack.enter_context(own_seeds(model))
        if switches.host_generators or switches.seeds_torch:
            own = survey(model).generators
        if switches.host_generators:
            stack.enter_context(seeded_host_generators(omega.seed, omega.draw, own))
        if switches.seeds_torch:
            marked = stack.enter_context(marked_torch_generators(own))
        if not above:
            stack.enter_context(torch.no_grad())
            stack.enter_context(below_autograd())
        else:
            stack.enter_context(without_checkpoints())
        if switches.gradients:
            stack.enter_context(torch.enable_grad())
        stack.enter_context(run.recorder)
        stack.enter_context(Guard(run, above_autograd=above, plain=switches.plain))
        # Above autograd even a write that is caught would count in a tensor's version,
        # and what it was made of would hang on the user's tensor.
        given = batch.cloned_arguments() if above else batch.arguments
        run.arguments = args, kwargs = given
        if is_keras(copy.modules[batch.part]) and not switches.plain:
            kwargs = {"training": True, **kwargs}  # in Keras that is an argument
        run.start()
        output = copy.modules[batch.part](*args, **kwargs)
        run.finished = time.perf_counter()
        run.settle()
    copy.stack.check_thread()
    run.seeded, run.moved = run.seeded or marked.seeded, marked.moved
    if run.recorder.has_redirected and not above:
        output = mapped(output, run.recorder.as_written)
    return output, run


def _switch_registered(copy: ModelCopy) -> None:
    for module in copy.modules.values():
        if (entry := registered(module)) is not None:
            entry.switch(module)


# ------------------------------------------------------------ torch.compile

# Under our modes torch's compiler would trace the modes as well, so functions that were
# compiled run as what they were compiled from. The request is global: it is counted.
_lock = threading.Lock()
_users = 0
_stance: Any = None


@contextmanager
def _compiler_aside() -> Iterator[None]:
    """Run ``torch.compile``d functions eagerly, in any thread that is in the block."""
    if not compiler_is_loaded():
        yield
        return
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _users, _stance
    with _lock:
        if _users == 0:
            _stance = torch.compiler.set_stance("force_eager")
            _stance.__enter__()
        _users += 1


def _leave() -> None:
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            _stance.__exit__(None, None, None)
