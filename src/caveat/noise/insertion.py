"""Putting noise into a network that has none."""

import copy
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from torch import nn

from caveat import _validation as validation
from caveat.errors import (
    CaveatWarning,
    InputTypeError,
    ParameterError,
    UnsupportedModelError,
)
from caveat.noise.base import Noise, NoisyLayer, NoisyModule
from caveat.noise.layers import WEIGHT_LAYERS

Predicate: TypeAlias = Callable[[str, nn.Module], bool]
Kinds: TypeAlias = type[nn.Module] | tuple[type[nn.Module], ...]

_UNTRAINED = """{name} was not trained with this noise. With a rate that it was not
trained with, the spread of its draws is no posterior: it shows how the network bears
the noise, not what it knows. Train the returned model before its uncertainty is used,
with caveat.noise.kl in the loss or the decay of caveat.noise.weight_decay_groups."""

_LEFT_OUT = """
These have weights, too, and stay without noise: {names}."""

_NOTHING = """where must choose at least one weight layer of {name}. Got {where!r};
noise can be put on {layers}."""

_UNCALLED = """No noise can be put on {names}: nn.MultiheadAttention uses the weights of
this layer without calling it. Choose other layers with where=."""


def insert(
    model: nn.Module,
    noise: Noise,
    where: Predicate | Iterable[str] | Kinds | None = None,
) -> nn.Module:
    """A copy of a network with noise on its weight layers.

    Every linear and convolution layer, or those chosen, is replaced by
    ``noise.wrap(layer)``; a subset makes a network of Bayesian layers between layers
    at their MAP estimate (paper 000, section 4.2). Weights, biases, strides, groups and
    all else are as before, so in evaluation mode the copy gives what the model gives.

    Parameters
    ----------
    model : nn.Module
        Not changed: the result is a deep copy and shares nothing with it.
    noise : Noise
        Such as ``Bernoulli(0.1)``. Each layer gets parameters of its own, if the
        family has any. A layer that is used twice stays one layer.
    where : optional
        Which layers: names as in ``model.named_modules()``, where a part of the model
        stands for all layers inside; a type of layer or a tuple of them; or a function
        of name and layer. By default all of them.

    Returns
    -------
    nn.Module
        Parameters of a layer ``name`` are now at ``name.layer``.

    Warns
    -----
    CaveatWarning
        That weights trained without this noise have no posterior of this form.

    Examples
    --------
    >>> import warnings
    >>> import torch
    >>> from caveat import noise
    >>> net = nn.Sequential(nn.Linear(2, 9), nn.ReLU(), nn.Linear(9, 1)).eval()
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # it will be trained
    ...     noisy = noise.insert(net, noise.Bernoulli(0.1), where=["2"])
    >>> torch.equal(net(torch.ones(1, 2)), noisy(torch.ones(1, 2)))
    True
    """
    model = validation.module("model", model)
    if not isinstance(noise, Noise):
        raise InputTypeError(
            f"noise must be a family of noise such as caveat.noise.Bernoulli(0.1). "
            f"Got {noise!r} of type {type(noise).__name__}."
        )
    chosen = _chosen(model, where)
    noisy = _replaced(_copied(model), noise, chosen)
    message = _UNTRAINED.format(name=type(model).__name__)
    if where is None and (rest := _left_out(noisy)):
        message += _LEFT_OUT.format(names=_listed(rest))
    warnings.warn(message, CaveatWarning, stacklevel=2)
    return noisy


def _chosen(model: nn.Module, where: Any) -> list[str]:
    """Names of the layers that get noise; all names of a layer that has several."""
    layers, uncalled = _layers(model)
    wanted = _predicate(where, {**layers, **uncalled})
    refused = [name for name, layer in uncalled.items() if wanted(name, layer)]
    if refused and where is not None:
        raise UnsupportedModelError(_UNCALLED.format(names=_listed(refused)))
    ids = {id(layer) for name, layer in layers.items() if wanted(name, layer)}
    if not ids:
        raise ParameterError(
            _NOTHING.format(
                name=type(model).__name__,
                where=where,
                layers=_listed(layers) or "none of its layers",
            )
        )
    return [name for name, layer in layers.items() if id(layer) in ids]


def _layers(model: nn.Module) -> tuple[dict[str, nn.Module], dict[str, nn.Module]]:
    """Weight layers without noise by name; and those that nobody calls."""
    named = list(model.named_modules(remove_duplicate=False))
    noisy = _inside(model, NoisyModule)
    attention = _inside(model, nn.MultiheadAttention)
    layers: dict[str, nn.Module] = {}
    uncalled: dict[str, nn.Module] = {}
    for name, module in named:
        if isinstance(module, WEIGHT_LAYERS) and id(module) not in noisy:
            (uncalled if id(module) in attention else layers)[name] = module
    return layers, uncalled


def _predicate(where: Any, layers: dict[str, nn.Module]) -> Predicate:
    if where is None:
        return lambda name, layer: True
    if isinstance(where, type | tuple):
        return lambda name, layer: isinstance(layer, where)
    if callable(where):
        return where
    if isinstance(where, str) or not isinstance(where, Iterable):
        raise InputTypeError(
            f"where must be names of layers in a list, a type of layer, or a function "
            f"of name and layer. Got {where!r} of type {type(where).__name__}."
        )
    return _by_name(list(where), layers)


def _by_name(names: list[str], layers: dict[str, nn.Module]) -> Predicate:
    def matches(given: str, name: str) -> bool:
        return given == name or name.startswith(f"{given}.")

    for given in names:
        if not any(matches(given, name) for name in layers):
            raise ParameterError(
                f"where must name weight layers, or parts of the model that have "
                f"some. Got {given!r}; there are {_listed(layers)}."
            )
    return lambda name, layer: any(matches(given, name) for given in names)


def _copied(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model)
    except RuntimeError as error:
        raise UnsupportedModelError(
            f"{type(model).__name__} cannot be copied: {error} Put the noise on its "
            f"layers one by one: model.layer = noise.wrap(model.layer)."
        ) from error


def _replaced(model: nn.Module, noise: Noise, names: list[str]) -> nn.Module:
    """``model`` with these layers wrapped, in place."""
    wrapped: dict[nn.Module, NoisyLayer] = {}
    found = {name: model.get_submodule(name) for name in names}
    for name, layer in found.items():
        if layer not in wrapped:
            wrapped[layer] = noise.wrap(layer)
        if not name:
            return wrapped[layer]
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, wrapped[layer])
    return model


def _left_out(model: nn.Module) -> list[str]:
    """Names of modules that hold matrices of weights and have no noise."""
    noisy = _inside(model, NoisyModule)
    return [
        name or type(model).__name__
        for name, module in model.named_modules()
        if id(module) not in noisy
        and any(p.dim() > 1 for p in module.parameters(recurse=False))
    ]


def _inside(model: nn.Module, kind: type[nn.Module]) -> set[int]:
    """Modules of a kind and all that is in them."""
    owners = (module for module in model.modules() if isinstance(module, kind))
    return {id(part) for owner in owners for part in owner.modules()}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
