"""Random modules that need a word of introduction.

Most random modules are found without one: whatever draws from torch's generators
while its ``training`` flag is set is a site. Register a class if its randomness hangs
on another switch, or to have the audit show its kind and rate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from caveat.errors import InputTypeError
from caveat.noise import ConcreteNoise


@dataclass(frozen=True)
class RandomModule:
    """How a class of modules is switched on, and what the audit says of it."""

    kind: str
    rate: Callable[[Any], float]
    switch: Callable[[Any], None]


def _set_training(module: nn.Module) -> None:
    module.training = True


def _learned_rate(module: ConcreteNoise) -> float:
    return module.drop_rate.item()


_registered: dict[type[nn.Module], RandomModule] = {
    ConcreteNoise: RandomModule("concrete dropout", _learned_rate, _set_training)
}
_version = 0


def register_noise(
    module_class: Any,
    *,
    kind: str,
    rate: Callable[[Any], float],
    switch: Callable[[Any], None] | None = None,
) -> None:
    """Tell Caveat about a class of random modules.

    Parameters
    ----------
    module_class : type
        The class; its subclasses are meant, too.
    kind : str
        What :func:`caveat.audit` calls it.
    rate : callable
        Reads the drop rate off a module.
    switch : callable, optional
        Turns the randomness of a module on. It is given a private copy, never the
        user's module. By default it sets ``module.training = True``.

    Examples
    --------
    >>> import torch, caveat
    >>> class DropPath(torch.nn.Module):
    ...     def __init__(self, drop_prob):
    ...         super().__init__()
    ...         self.drop_prob = drop_prob
    ...     def forward(self, x):
    ...         if not self.training:
    ...             return x
    ...         keep = x.new_empty(len(x), 1).bernoulli_(1 - self.drop_prob)
    ...         return x * keep / (1 - self.drop_prob)
    >>> caveat.register_noise(DropPath, kind="drop path", rate=lambda m: m.drop_prob)
    """
    if not (isinstance(module_class, type) and issubclass(module_class, nn.Module)):
        raise InputTypeError(
            f"register_noise takes a subclass of torch.nn.Module. Got {module_class!r}."
        )
    global _version
    _registered[module_class] = RandomModule(kind, rate, switch or _set_training)
    _version += 1


def registered(module: nn.Module) -> RandomModule | None:
    """The entry of the class of ``module`` or of its nearest registered base."""
    for base in type(module).__mro__:
        if base in _registered:
            return _registered[base]
    return None


def registry_version() -> int:
    """Changes with every registration, so that plans made before are not used."""
    return _version
