"""Keras 3 on its torch backend: layers that are modules, with manners of their own.

- Whether a layer drops anything is an argument of its call, ``training``, handed down
  from the model. A model is called with True, as in training; norms never are.
- A graph of layers (``Sequential``, ``Functional``) holds them where no copy of the
  model reaches; the copy runs its own.
- Layers draw from generators that they seed themselves, from a state that moves with
  every call (``SeedGenerator``). A copy has stand-ins that leave the state alone.

Keras is never imported here: its classes are told by their names.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import ref

import torch
from torch import nn

from caveat.errors import UnsupportedModelError
from caveat.sampling.host import MARK

# What stand-ins seed generators with: that of a generator which nobody has seeded.
SEED = MARK & 0xFFFFFFFF

_GRAPH = "_run_through_graph"
_NORMS = frozenset(("BatchNormalization", "SpectralNormalization"))
_TRACKED = frozenset(("TrackedList", "TrackedDict", "TrackedSet"))
_UNBUILT = """The Keras layer {name!r} has no weights yet: it is made when it is first
called. Call the model on a batch before it is sampled."""


def is_keras(module: Any) -> bool:
    """Whether a module is a layer or model of Keras."""
    return "keras" in sys.modules and _is_a(module, frozenset(("Layer",)))


def calls_as_a_module(kind: type) -> bool:
    """Whether the ``__call__`` of a class is that of Keras, which calls torch's."""
    return kind.__name__ == "Layer" and kind.__module__.startswith("keras.")


def is_seed_generator(value: Any) -> bool:
    """Whether a value is where layers of Keras get their seeds from."""
    return "keras" in sys.modules and _is_a(value, frozenset(("SeedGenerator",)))


def is_tracked(value: Any) -> bool:
    """Whether a value is a container in which Keras looks for layers."""
    return "keras" in sys.modules and _is_a(value, _TRACKED)


def named_parts(layer: Any) -> Iterator[tuple[str, nn.Module]]:
    """The layers directly inside a layer, by their names."""
    if not layer.built:
        raise UnsupportedModelError(_UNBUILT.format(name=layer.name))
    for part in list(layer._layers):
        yield part.name, part


def drop_rate(layer: Any) -> float | None:
    """The rate of a layer that has one."""
    rate = getattr(layer, "rate", None)
    return rate if is_keras(layer) and isinstance(rate, int | float) else None


def stand_in(seeds: Any) -> Any:
    """A seed generator for a pass: its numbers mean nothing, and no state moves.

    As if it had been given no seed: then ``Dropout`` is torch's own, which shows its
    rate, instead of a comparison with numbers of a generator.
    """
    made = object.__new__(type(seeds))
    made.__dict__.update(seeds.__dict__, _initial_seed=None, next=_next_seed)
    return made


def _next_seed(ordered: bool = True) -> torch.Tensor:
    return torch.tensor([SEED, 0])


def graph_of_copies(
    model: "ref[nn.Module]", parts: Mapping[int, "ref[nn.Module]"]
) -> dict[str, Any]:
    """An attribute for the copy of a model: its graph of layers is run with copies.

    ``parts`` are those of its layers, by the ``id`` of the original. Weak references:
    a copy is to be freed when its pass ends.
    """

    def run(
        inputs: Any, operation_fn: Callable[[Any], Any] = lambda op: op, **options: Any
    ) -> Any:
        def of_copy(operation: Any) -> Any:
            copy = parts.get(id(operation), lambda: operation)()
            return operation_fn(copy)

        graph = getattr(type(model()), _GRAPH)
        return graph(model(), inputs, of_copy, **options)

    return {_GRAPH: run} if hasattr(type(model()), _GRAPH) else {}


def without_batch_statistics(layer: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a call, with ``training`` off if the layer is a norm.

    Keras takes nothing but tensors by position.
    """
    statistics = hasattr(layer, "moving_mean") and hasattr(layer, "moving_variance")
    is_norm = statistics or _is_a(layer, _NORMS)
    if not is_norm or not layer._call_has_training_arg:
        return options
    return {**options, "training": False}


@contextmanager
def own_seeds(model: nn.Module) -> Iterator[None]:
    """Keras' global seed generator, one for each thread, stays as it is."""
    if not is_keras(model):
        yield
        return
    state = sys.modules["keras.src.backend.common.global_state"]
    seeds = sys.modules["keras.src.random.seed_generator"]
    before = seeds.global_seed_generator()
    state.set_global_attribute(seeds.GLOBAL_SEED_GENERATOR, stand_in(before))
    try:
        yield
    finally:
        state.set_global_attribute(seeds.GLOBAL_SEED_GENERATOR, before)


def _is_a(value: Any, names: frozenset[str]) -> bool:
    return any(
        base.__name__ in names and base.__module__.startswith("keras.")
        for base in type(value).__mro__
    )
