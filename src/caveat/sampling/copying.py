"""A structural copy of a model: new modules, the same parameters and buffers.

Sampling needs some modules in training mode (an attention layer that asks
``self.training`` before it drops anything) and needs to know which module is
running. Both would mean writing to the user's modules, which other threads may be
using at this very moment. So every pass runs on a copy of the module *tree*: each
module is a bare new object with its own ``__dict__``, flags and hook tables, while
all tensors are shared by reference.

Writes to shared tensors during a pass are caught further down (``recorder.py``).
"""

import functools
import threading
import types
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from caveat._torch import CALL, MODULES, TENSORS, compiled_from, plain_call
from caveat.errors import UnsupportedModelError
from caveat.sampling.host import MARK
from caveat.sampling.keras_layers import (
    graph_of_copies,
    is_keras,
    is_seed_generator,
    is_tracked,
    named_parts,
    stand_in,
    without_batch_statistics,
)

_SCRIPTED = """{name} is a TorchScript module, whose dropout was fixed when it was made.
Pass the Python module from before torch.jit.script or torch.jit.trace."""

_SHARDED = """{name} is sharded over processes ({kind}): its weights come and go with
hooks that its own passes keep count of, so that passes of ours would disturb it. Pass a
module that is whole: build it anew, and load what get_model_state_dict (of
torch.distributed.checkpoint.state_dict) gives with full_state_dict=True."""


_THREAD = """Module {path!r} is run in another thread than the model, where its noise
cannot be seen. Run all modules in the thread that calls the model."""

_PLAIN = (bool, int, float, str, type(None))


class ModuleStack:
    """Which module of the copy is running: its path, for naming sites.

    A pass runs in one thread and owns its copy, so this is not shared.
    """

    def __init__(self) -> None:
        self._paths: list[str] = [""]
        self._thread = threading.get_ident()
        self._elsewhere: str | None = None
        self.reached: set[str] = set()  # all modules that have run

    @property
    def path(self) -> str:
        """Path of the module whose ``forward`` is running; "" for the model itself."""
        return self._paths[-1]

    @contextmanager
    def inside(self, path: str) -> Iterator[None]:
        """Note that the module at ``path`` runs."""
        if threading.get_ident() != self._thread:
            self._elsewhere = path
            self.check_thread()
        self._paths.append(path)
        self.reached.add(path)
        try:
            yield
        finally:
            self._paths.pop()

    def check_thread(self) -> None:
        """Refuse modules that ran in a thread of their own: nothing is seen there."""
        if self._elsewhere is not None:
            raise UnsupportedModelError(_THREAD.format(path=self._elsewhere))


class ModelCopy:
    """The structural copy of ``model``, with every module in evaluation mode.

    ``own_buffers`` copies the buffers as well, for passes above autograd: there even a
    write that is caught would count in the version of the user's tensor.

    Attributes
    ----------
    root : nn.Module
        The copy of the model itself.
    modules : dict of str to nn.Module
        All copies by path. Unlike ``named_modules`` this has modules kept in plain
        lists and dicts, too.
    originals : dict of str to nn.Module
        What they are copies of.
    stack : ModuleStack
        Follows which copy is running.
    """

    def __init__(self, model: nn.Module, *, own_buffers: bool = False) -> None:
        self._own_buffers = own_buffers
        self.stack = ModuleStack()
        self.modules: dict[str, nn.Module] = {}
        self.originals: dict[str, nn.Module] = {}
        self._copies: dict[int, nn.Module] = {}
        self._generators: dict[int, torch.Generator] = {}
        self.root = self._copy_module(model, "")

    def switch_on(self, paths: Iterable[str]) -> None:
        """Put the modules at ``paths`` in training mode."""
        for path in paths:
            object.__setattr__(self.modules[path], "training", True)

    def has_copied(self, generator: torch.Generator) -> bool:
        """Whether a generator of the model is not the user's own object here."""
        return id(generator) in self._generators

    def _copy_module(self, module: nn.Module, path: str) -> nn.Module:
        module = original(module)
        _refuse_shards(module)
        if id(module) in self._copies:
            return self._copies[id(module)]
        copy: nn.Module = object.__new__(module.__class__)
        self._copies[id(module)] = self.modules[path] = copy
        self.originals[path] = module
        is_layer = is_keras(module)
        parts = self._copy_parts(module, path) if is_layer else {}
        state: dict[str, Any] = {}
        # A list first: another thread may add an attribute meanwhile.
        for name, value in list(module.__dict__.items()):
            if type(value) in _PLAIN or _is_plain_tuple(value):
                state[name] = value
            elif name in TENSORS or (isinstance(value, dict) and not value):
                state[name] = value.copy()
            else:
                where = path if name == MODULES else _join(path, name)
                state[name] = self._copy_value(value, where)
        if self._own_buffers:
            _, buffers = TENSORS
            state[buffers] = {k: _cloned(v) for k, v in state[buffers].items()}
        if is_layer:
            state.update(graph_of_copies(weakref.ref(copy), parts))
        state["training"] = False
        state[CALL] = self._tracked_call(copy, path)
        object.__setattr__(copy, "__dict__", state)
        return copy

    def _tracked_call(self, module: nn.Module, path: str) -> Callable[..., Any]:
        # No strong reference to the module: a copy is to be freed when its pass ends,
        # not when the garbage collector comes round.
        stack, weak, is_layer = self.stack, weakref.ref(module), is_keras(module)

        def call(*args: Any, **kwargs: Any) -> Any:
            running = weak()
            assert running is not None
            with stack.inside(path):
                if is_layer:
                    kwargs = without_batch_statistics(running, kwargs)
                return plain_call(running)(*args, **kwargs)

        return call

    def _copy_parts(self, layer: nn.Module, path: str) -> dict[int, Any]:
        """Copy the layers of a Keras layer under their names; weak, by original."""
        found: dict[int, Any] = {}
        for name, part in named_parts(layer):
            where = _join(path, name)
            where = where if where not in self.modules else f"{where}[{len(found)}]"
            found[id(part)] = weakref.ref(self._copy_module(part, where))
        return found

    def _copy_value(self, value: Any, path: str) -> Any:
        """Containers anew, modules and what is bound to them copied, rest shared."""
        if isinstance(value, nn.Module):
            return self._copy_module(value, path)
        kind = type(value)
        if kind in (dict, OrderedDict, defaultdict):
            copy = value.copy()
            copy.update(
                {k: self._copy_value(v, _join(path, k)) for k, v in value.items()}
            )
            return copy
        if is_seed_generator(value):
            return stand_in(value)
        if is_tracked(value):
            return self._copy_tracked(value, path)
        if kind in (list, set, tuple):
            return kind(
                self._copy_value(v, f"{path}[{i}]") for i, v in enumerate(value)
            )
        if kind is torch.Generator:
            return self._copy_generator(value)
        if kind is types.MethodType:
            return types.MethodType(
                value.__func__, self._copy_value(value.__self__, path)
            )
        if kind is functools.partial:
            return functools.partial(
                self._copy_value(value.func, path),
                *(
                    self._copy_value(v, f"{path}[{i}]")
                    for i, v in enumerate(value.args)
                ),
                **{
                    k: self._copy_value(v, _join(path, k))
                    for k, v in value.keywords.items()
                },
            )
        return value

    def _copy_generator(self, generator: torch.Generator) -> torch.Generator:
        """A source of noise: it carries our mark until the model seeds it."""
        if id(generator) not in self._generators:
            copy = torch.Generator(generator.device).manual_seed(MARK)
            self._generators[id(generator)] = copy
        return self._generators[id(generator)]

    def _copy_tracked(self, value: Any, path: str) -> Any:
        """A container of Keras: filled past its tracker, which is the user's."""
        kind: Any = type(value)
        copy = kind.__new__(kind)
        if isinstance(value, dict):
            plain = self._copy_value(dict(value), path)
            dict.update(copy, plain)
        elif isinstance(value, set):
            set.update(copy, self._copy_value(set(value), path))
        else:
            list.extend(copy, self._copy_value(list(value), path))
        copy.__dict__.update(value.__dict__)
        return copy


def original(module: nn.Module) -> nn.Module:
    """What a compiled module was compiled from; refuse what has no Python left."""
    if isinstance(module, torch.jit.ScriptModule):
        raise UnsupportedModelError(_SCRIPTED.format(name=type(module).__name__))
    return compiled_from(module)


def _refuse_shards(module: nn.Module) -> None:
    tensors = (t for name in TENSORS for t in module.__dict__[name].values())
    kinds: tuple[type, ...] = (type(module), *{type(t) for t in tensors})
    for kind in kinds:
        if _is_sharded(kind):
            name = type(module).__name__
            raise UnsupportedModelError(_SHARDED.format(name=name, kind=kind.__name__))


@functools.cache
def _is_sharded(kind: type) -> bool:
    """By name: to import these classes would load all of torch.distributed."""
    names = {base.__name__ for base in kind.__mro__}
    return not names.isdisjoint(("FSDPModule", "FullyShardedDataParallel", "DTensor"))


def _is_plain_tuple(value: Any) -> bool:
    return type(value) is tuple and all(type(item) in _PLAIN for item in value)


def _cloned(buffer: Tensor | None) -> Tensor | None:
    return None if buffer is None else buffer.detach().clone()


def _join(path: str, name: Any) -> str:
    return f"{path}.{name}" if path else str(name)
