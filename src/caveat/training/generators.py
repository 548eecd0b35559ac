"""Random operations of a block of code, drawn from generators of our own.

``with OwnGenerators(seed): model(x)`` gives every random operation that reaches torch a
generator that nobody else has, so that a training is repeatable and torch's global
generators, on any device, are neither read nor set.
"""

from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor

from caveat._torch import DispatchMode, OpOverload, op_arguments, op_overload
from caveat.errors import UnsupportedModelError

_aten = torch.ops.aten
_NO_GENERATOR = """{name} draws from torch's global generator and takes no other, so a
training with it cannot be repeated. Write it with torch.rand, torch.randn or
torch.bernoulli, or keep it out of the model."""


@final
class OwnGenerators(DispatchMode):
    """Hands a generator to every random operation in the block.

    Parameters
    ----------
    seed : int
        Of the generators, one per device; blocks of the same object go on drawing.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func not in _ways:
            _ways[func] = _way(func)
        way, device = _ways[func], _device(args, kwargs)
        if way is None or device.type == "meta":  # where there are no numbers
            return func(*args, **kwargs)
        return way(self._generator(device), *args, **kwargs)

    def _generator(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            own = torch.Generator(device).manual_seed(self._seed)
            self._generators[device] = own
        return self._generators[device]


Way = Callable[..., Any]
_ways: dict[OpOverload, Way | None] = {}


def _way(func: OpOverload) -> Way | None:
    """How to run an operation with a generator; None if it draws nothing."""
    if func in _RULES:
        return _RULES[func]
    if _takes_generator(func):
        return lambda own, *args, **kw: func(*args, **(kw | {"generator": own}))
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return None
    sibling = _sibling(func)
    if sibling is None:
        return lambda own, *args, **kw: _only_without_dropout(func, args, kw)
    return lambda own, *args, **kw: sibling(*args, generator=own, **kw)


def _device(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device:
    like = next((a for a in args if isinstance(a, Tensor)), None)
    device = kwargs.get("device") or (like.device if like is not None else "cpu")
    return torch.device(device)


def _takes_generator(func: OpOverload) -> bool:
    return any(argument.name == "generator" for argument in op_arguments(func))


def _sibling(func: OpOverload) -> OpOverload | None:
    """The same operation with a generator: ``rand.generator`` for ``rand``."""
    name = op_overload(func)
    wanted = "generator" if name == "default" else f"{name}_generator"
    packet = func.overloadpacket
    return getattr(packet, wanted) if wanted in packet.overloads() else None


def _only_without_dropout(
    func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Fused attention and the like, which draw only if their rate is not 0."""
    names = [argument.name for argument in op_arguments(func)]
    given = dict(zip(names, args, strict=False)) | kwargs
    rates = [n for n in ("dropout_p", "dropout") if n in names]
    if not rates or any(given.get(name, 0.0) for name in rates):
        raise UnsupportedModelError(_NO_GENERATOR.format(name=func))
    return func(*args, **kwargs)


def _rand_like(own: torch.Generator, x: Tensor, **options: Any) -> Tensor:
    return torch.empty_like(x, **options).uniform_(generator=own)


def _randn_like(own: torch.Generator, x: Tensor, **options: Any) -> Tensor:
    return torch.empty_like(x, **options).normal_(generator=own)


def _native_dropout(
    own: torch.Generator, x: Tensor, p: float, train: bool | None
) -> tuple[Tensor, Tensor]:
    """What CUDA makes of dropout; the second result is the mask."""
    if train is False:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    mask = torch.empty_like(x).bernoulli_(1.0 - p, generator=own).bool()
    return x * mask * (1.0 / (1.0 - p) if p < 1.0 else 0.0), mask


_RULES: dict[OpOverload, Way] = {
    _aten.rand_like.default: _rand_like,
    _aten.randn_like.default: _randn_like,
    _aten.native_dropout.default: _native_dropout,
}
