"""Running a copy of a model once, below or above autograd."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from caveat._torch import below_autograd, compiler_is_loaded, pytree
from caveat.sampling.copying import ModelCopy
from caveat.sampling.guard import Guard
from caveat.sampling.host import seeded_host_generators
from caveat.sampling.inputs import Batch
from caveat.sampling.keras_layers import is_keras, own_seeds
from caveat.sampling.objects import rebuilt
from caveat.sampling.passes import Omega, Pass
from caveat.sampling.recorder import Recorder
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
    with ExitStack() as stack:
        stack.enter_context(_compiler_aside())
        stack.enter_context(own_seeds(model))
        if switches.host_generators:
            stack.enter_context(seeded_host_generators(omega.seed, omega.draw))
        if not above:
            stack.enter_context(torch.no_grad())
            stack.enter_context(below_autograd())
        stack.enter_context(run.recorder)
        stack.enter_context(Guard(run, above_autograd=above, plain=switches.plain))
        # Above autograd even a write that is caught would count in a tensor's version.
        own = Tensor.clone if above else _as_it_is
        run.arguments = args, kwargs = batch.fresh_arguments(own)
        if is_keras(copy.modules[batch.part]) and not switches.plain:
            kwargs = {"training": True, **kwargs}  # in Keras that is an argument
        run.started = time.perf_counter()
        output = copy.modules[batch.part](*args, **kwargs)
        run.finished = time.perf_counter()
    return (output if above else _as_written(output, run.recorder)), run


def _as_it_is(tensor: Tensor) -> Tensor:
    return tensor


def _as_written(output: Any, recorder: Recorder) -> Any:
    """The output, with what was written to its tensors if they are the user's."""
    if not recorder.has_redirected:
        return output
    leaves, structure = pytree.tree_flatten(output)
    leaves = [rebuilt(leaf, recorder.as_written) for leaf in leaves]
    return pytree.tree_unflatten(leaves, structure)


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
