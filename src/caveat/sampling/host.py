"""Generators whose numbers have no address: Python's, numpy's, and torch's own.

A layer may be skipped when ``random.random()`` says so, or when a generator says so
that the model holds. Such numbers have no address; what can be done is to seed all
these generators by draw before a pass and put them back after it. They are shared with
the rest of the process, so these passes take turns.

A model may also seed torch's generator itself, to have the same numbers in every pass.
To see that, the generator is set to a seed of ours (the *mark*) during a pass: as long
as it has that seed, nobody else has seeded it.
"""

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from caveat._random import stream_key

MARK = 0x6361766561745F5F  # a seed that no model has by chance

_turn = threading.RLock()


@dataclass
class GeneratorUse:
    """What happened to the generators in a block.

    ``drawn``: Python's, numpy's or the model's own were used. ``moved``: torch's was
    used behind our back. ``seeded``: torch's was given another seed.
    """

    drawn: bool = False
    moved: bool = False
    seeded: bool = False


@contextmanager
def seeded_host_generators(seed: int, draw: int, own: Sequence[Any]) -> Iterator[None]:
    """Python's, numpy's and the model's generators seeded for this draw, then restored.

    ``own`` are the generators that a model holds.
    """
    with _turn:
        before = _state(own)
        try:
            _seed(stream_key(seed, f"host@{draw}"), own)
            yield
        finally:
            _restore(before, own)


@contextmanager
def marked_torch_generators(own: Sequence[Any]) -> Iterator[GeneratorUse]:
    """Torch's generator, and those of ``own``, carry our mark; restored on exit."""
    mine = [g for g in own if isinstance(g, torch.Generator)]
    generators, watch = [torch.default_generator, *mine], GeneratorUse()
    with _turn:
        states = [generator.get_state() for generator in generators]
        try:
            for generator in generators:
                generator.manual_seed(MARK)
            start = torch.get_rng_state()
            yield watch
        finally:
            watch.seeded = torch.initial_seed() != MARK
            watch.moved = not torch.equal(torch.get_rng_state(), start)
            for generator, state in zip(generators, states, strict=True):
                generator.set_state(state)


@contextmanager
def watched_generators(own: Sequence[Any]) -> Iterator[GeneratorUse]:
    """See what happens to all generators; they are restored.

    Those of Python, numpy and the model start from a fixed state, so that what is seen
    does not hang on their past. Torch's is left as it is: other threads may use it.
    """
    watch = GeneratorUse()
    with _turn:
        before, torch_before = _state(own), torch.get_rng_state()
        seed_before = torch.initial_seed()
        try:
            _seed(0, own)
            start = _state(own)
            yield watch
        finally:
            watch.drawn = not _same(start, _state(own))
            watch.seeded = torch.initial_seed() != seed_before
            watch.moved = not torch.equal(torch.get_rng_state(), torch_before)
            _restore(before, own)
            if watch.moved:
                torch.set_rng_state(torch_before)


def _seed(key: int, own: Sequence[Any]) -> None:
    random.seed(key)
    np.random.seed(key % 2**32)  # noqa: NPY002
    for number, generator in enumerate(own):
        own_key = stream_key(key, f"own@{number}")
        if isinstance(generator, np.random.Generator):
            bits = generator.bit_generator
            bits.state = type(bits)(own_key).state
        elif not isinstance(generator, torch.Generator):
            generator.seed(own_key % 2**32)


def _state(own: Sequence[Any]) -> list[Any]:
    numpy_state = np.random.get_state(legacy=True)  # noqa: NPY002
    return [random.getstate(), numpy_state, *map(_state_of, own)]


def _state_of(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=True)
    if isinstance(generator, random.SystemRandom) or not hasattr(generator, "getstate"):
        return None  # nothing can be seeded: if it is used, passes do not repeat
    return generator.getstate()


def _restore(state: list[Any], own: Sequence[Any]) -> None:
    random.setstate(state[0])
    np.random.set_state(state[1])  # noqa: NPY002
    for generator, before in zip(own, state[2:], strict=True):
        if isinstance(generator, np.random.Generator):
            generator.bit_generator.state = before
        elif isinstance(generator, np.random.RandomState):
            generator.set_state(before)
        elif before is not None:
            generator.setstate(before)


def _same(left: Any, right: Any) -> bool:
    """Equality of states, which are nested and hold arrays."""
    if isinstance(left, np.ndarray):
        return np.array_equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(
            _same(left[key], right[key]) for key in left
        )
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)
