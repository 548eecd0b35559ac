"""``with caveat.stochastic(model): model(x)``, for people with their own loop.

Inside the block a call of the model runs the next draw on a copy. The call is caught
by the attribute that ``nn.Module.__call__`` consults before it runs a module (torch
keeps it for ``Module.compile``); it is looked at in this thread only, so other threads
that call the model meanwhile get the model as it is.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import torch
from torch import nn

from caveat._random import Seed, as_seed
from caveat._torch import CALL, plain_call
from caveat.sampling.arguments import call_batch
from caveat.sampling.engine import Sampler
from caveat.sampling.inputs import check_model

_lock = threading.Lock()
_mine = threading.local()


@contextmanager
def stochastic(
    model: nn.Module, *, seed: Seed = None, shared: bool = True
) -> Iterator[nn.Module]:
    """Let ``model(x)`` draw: every call in the block is one stochastic pass.

    The k-th call is draw k, equal to ``MCDropout(model, seed=seed).draws(x)[k]``.
    Gradients flow if they are enabled. Only calls of ``model`` itself count, from this
    thread; its weights, flags and hooks stay as they are.

    Examples
    --------
    >>> import torch, caveat
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5)).eval()
    >>> x = torch.ones(1, 2)
    >>> with caveat.stochastic(net, seed=0), torch.no_grad():
    ...     passes = torch.stack([net(x) for _ in range(3)])
    >>> torch.equal(passes, caveat.MCDropout(net, seed=0).draws(x, n_draws=3))
    True
    """
    sampler = Sampler(check_model(model), as_seed(seed), bool(shared))
    numbers = count()

    def draw(*args: Any, **kwargs: Any) -> Any:
        batch = call_batch(model, args, kwargs, axis=0)
        above = torch.is_grad_enabled()
        return sampler.one_pass(batch, next(numbers), above_autograd=above)

    waiting: list[tuple[nn.Module, Any]] = _mine.__dict__.setdefault("draws", [])
    waiting.append((model, draw))
    _redirect(model)
    try:
        yield model
    finally:
        waiting.pop()
        _direct(model)


class _Redirection:
    """Stands in for a module's call while some thread samples it."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.before = model.__dict__.get(CALL)
        self.users = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for model, draw in reversed(_mine.__dict__.get("draws", [])):
            if model is self.model:
                return draw(*args, **kwargs)
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
