"""``with caveat.stochastic(model): model(x)``, for people with their own loop.

Inside the block a call of the model runs the next draw on a copy. The call is caught
by the attribute that ``nn.Module.__call__`` consults before it runs a module (torch
keeps it for ``Module.compile``); it is looked at in this thread only, so other threads
that call the model meanwhile get the model as it is.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count, repeat
from typing import Any

import torch
from torch import nn

from caveat import _validation as check
from caveat._random import Seed, as_seed
from caveat._torch import CALL, compiled_from, plain_call
from caveat.errors import UnsupportedModelError
from caveat.sampling.arguments import argument_batch
from caveat.sampling.copying import ModelCopy
from caveat.sampling.engine import Sampler
from caveat.sampling.inputs import Batch, check_model
from caveat.sampling.keras_layers import calls_as_a_module
from caveat.sampling.names import check_names

_OWN_CALL = """{name} has a __call__ of its own, which a block cannot stand in for: its
calls would not be drawn. Use MCDropout(model).function(t)(x): it is the same draw."""

_lock = threading.Lock()
_mine = threading.local()


@contextmanager
def stochastic(
    model: nn.Module,
    *,
    seed: Seed = None,
    shared: bool = True,
    stratified: bool = True,
    draw: int | None = None,
) -> Iterator[nn.Module]:
    """Let ``model(x)`` draw: every call in the block is one stochastic pass.

    The k-th call is draw k, equal to ``MCDropout(model, seed=seed).draws(x)[k]``.
    Gradients flow if they are enabled. Only calls of ``model`` itself count, from this
    thread; its weights, flags and hooks stay as they are.

    Parameters
    ----------
    model : nn.Module
        A trained network that draws noise somewhere.
    seed : int, torch.Generator or None
        Fixes ω₀, ω₁, …; None takes fresh entropy, once.
    shared : bool
        One ω per draw for all rows; False gives each row noise of its own.
    stratified : bool
        Draws that together cover the noise evenly; see :class:`caveat.MCDropout`.
    draw : int, optional
        Every call is this draw: ``MCDropout(model, seed=seed).function(draw)``. So is
        a call of a part of the model (its encoder). Calls with a key-value cache fit
        together: ``model.generate(...)`` in the block writes with one function.

    Yields
    ------
    nn.Module
        ``model`` itself.

    Examples
    --------
    >>> import torch, caveat
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5)).eval()
    >>> x = torch.ones(1, 2)
    >>> with caveat.stochastic(net, seed=0), torch.no_grad():
    ...     passes = torch.stack([net(x) for _ in range(3)])
    >>> torch.equal(passes, caveat.MCDropout(net, seed=0).draws(x, n_draws=3))
    True
    >>> with caveat.stochastic(net, seed=0, draw=2), torch.no_grad():
    ...     torch.equal(net(x), passes[2]), torch.equal(net(x), passes[2])
    (True, True)
    """
    _check_call(check_model(model))
    sampler = Sampler(
        model,
        as_seed(seed),
        check.boolean("shared", shared),
        check.boolean("stratified", stratified),
    )
    block = _Block(
        sampler, count() if draw is None else repeat(check.draw_number(draw))
    )
    block.add(model, "")
    if draw is not None:
        for path, part in ModelCopy(model).originals.items():
            if not _has_own_call(part):  # its calls do not come to us
                block.add(part, path)
    blocks: list[_Block] = _mine.__dict__.setdefault("blocks", [])
    blocks.append(block)
    for module in block.modules:
        _redirect(module)
    try:
        yield model
    finally:
        blocks.pop()
        for module in block.modules:
            _direct(module)


class _Block:
    """What calls of a model and its parts do in one ``with`` block."""

    def __init__(self, sampler: Sampler, numbers: Iterator[int]) -> None:
        self._sampler = sampler
        self._numbers = numbers
        self._paths: dict[int, str] = {}
        self._busy = False
        self.modules: list[nn.Module] = []

    def add(self, module: nn.Module, path: str) -> None:
        if id(module) not in self._paths:
            self._paths[id(module)] = path
            self.modules.append(module)

    def draws(self, module: nn.Module) -> bool:
        """Whether a call of ``module`` is to draw; not if a draw makes it itself."""
        return id(module) in self._paths and not self._busy

    def draw(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        check_names("a draw", module, kwargs)
        batch = Batch.of(args, kwargs, axis=0, model=module)
        batch = replace(batch, part=self._paths[id(module)])
        above = torch.is_grad_enabled()
        self._busy = True
        try:
            batch = argument_batch(self._sampler.model, batch)
            number = next(self._numbers)
            return self._sampler.one_pass(batch, number, above_autograd=above)
        finally:
            self._busy = False


def _check_call(model: nn.Module) -> None:
    """Refuse a class with a ``__call__`` of its own: calls would not come to us."""
    if _has_own_call(model):
        raise UnsupportedModelError(_OWN_CALL.format(name=type(model).__name__))


def _has_own_call(module: nn.Module) -> bool:
    kinds = type(module).__mro__
    owner = next(kind for kind in kinds if "__call__" in kind.__dict__)
    if owner is nn.Module or calls_as_a_module(owner) or _is_traced(owner):
        return False
    return compiled_from(module) is module


def _is_traced(owner: type) -> bool:
    """Whether the ``__call__`` is that of a graph of torch.fx, which calls torch's."""
    call = owner.__dict__["__call__"]
    return getattr(call, "__module__", None) == "torch.fx.graph_module"


class _Redirection:
    """Stands in for a module's call while some thread samples it."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.before = model.__dict__.get(CALL)
        self.users = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for block in reversed(_mine.__dict__.get("blocks", [])):
            if block.draws(self.model):
                return block.draw(self.model, args, kwargs)
        plain = self.before or plain_call(self.model)
        return plain(*args, **kwargs)


def _redirect(model: nn.Module) -> None:
    with _lock:
        current = model.__dict__.get(CALL)
        if not isinstance(current, _Redirection):
            current = _Redirection(model)
            model.__dict__[CALL] = current
        current.users += 1


def _direct(model: nn.Module) -> None:
    with _lock:
        current = model.__dict__[CALL]
        current.users -= 1
        if current.users:
            return
        if current.before is None:
            del model.__dict__[CALL]
        else:
            model.__dict__[CALL] = current.before
