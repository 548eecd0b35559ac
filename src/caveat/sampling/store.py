"""Templates of a model by the kind of batch, for calls to come.

A template is used again for a batch of the same shapes if the model's tensors are the
very ones it was recorded with (their values may change: they are read anew). It must
have proved itself once: the second batch of a kind is recorded as well, and both must
give the same draw. Few kinds are kept.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import repeat
from operator import attrgetter, is_
from typing import Any

import torch
from torch import Tensor, nn

from caveat._torch import storage_address, takes_apart
from caveat.sampling.inputs import Batch
from caveat.sampling.sparse import parts
from caveat.sampling.templates import Template

_PLAIN = frozenset((Tensor, nn.Parameter))
_layout = attrgetter("layout")
_MOST_KINDS = 16
MOST_WAYS = 8  # that a model may go, before every draw runs it
_SMALL = 1 << 16  # numbers of an input that are kept to be compared


@dataclass(eq=False)
class Known:
    """A template, and what is known of it.

    Attributes
    ----------
    template : Template
        One way that the model goes.
    proved : bool
        Whether it gave what the model gives for another batch than its own.
    """

    template: Template
    inputs: tuple[Any, ...]
    proved: bool = False

    def is_safe_for(self, batch: Batch) -> bool:
        """Whether it is proved, or ``batch`` is the very one that was recorded."""
        return self.proved or all(map(_is_same, self.inputs, batch.leaves))


@dataclass(eq=False)
class BatchKind:
    """What is known of batches of one kind, as long as the model's tensors stay."""

    known: list[Known] = field(default_factory=list)
    _tensors: tuple[Tensor, ...] = ()
    _memory: list[int | None] = field(default_factory=list)

    def note(self, template: Template, batch: Batch, tensors: list[Tensor]) -> None:
        """Keep the template of a batch, if it can serve others."""
        if not self.holds_for(tensors):
            self.known.clear()
            self._tensors, self._memory = tuple(tensors), _memory_of(tensors)
        if _can_serve(template, batch, tensors):
            inputs = tuple(map(_remembered, batch.leaves))
            self.known.append(Known(template, inputs))
            del self.known[:-MOST_WAYS]

    def known_for(self, tensors: list[Tensor]) -> list[Known]:
        """The templates, if the model's tensors are those that were seen."""
        return list(self.known) if self.holds_for(tensors) else []

    def forget(self, known: Known) -> None:
        """A template that was wrong for another batch."""
        if known in self.known:
            self.known.remove(known)

    def holds_for(self, tensors: list[Tensor]) -> bool:
        """Whether the model's tensors are those that were seen."""
        return (
            len(tensors) == len(self._tensors)
            and all(map(is_, tensors, self._tensors))
            and None not in self._memory
            and _memory_of(tensors) == self._memory
        )


def _memory_of(tensors: list[Tensor]) -> list[int | None]:
    """Where the numbers of tensors are; this is asked in every call."""
    strided = all(map(is_, map(_layout, tensors), repeat(torch.strided)))
    if strided and _PLAIN.issuperset(map(type, tensors)):
        return list(map(Tensor.data_ptr, tensors))
    return list(map(_memory, tensors))


def _memory(tensor: Tensor) -> int | None:
    """Where the numbers of a tensor are; None if that cannot be told."""
    if takes_apart(type(tensor)):
        return None
    return parts(tensor)[0].data_ptr()


class TemplateStore:
    """The kinds of batches that a plan has met, the last ones only."""

    def __init__(self) -> None:
        self._kinds: OrderedDict[Any, BatchKind] = OrderedDict()
        self._lock = threading.Lock()

    def kind(self, key: Any) -> BatchKind:
        """What is known of a kind of batch."""
        with self._lock:
            found = self._kinds.pop(key, None) or BatchKind()
            self._kinds[key] = found
            if len(self._kinds) > _MOST_KINDS:
                self._kinds.popitem(last=False)
        return found


def _can_serve(template: Template, batch: Batch, tensors: list[Tensor]) -> bool:
    """Whether it can be used for other batches at all."""
    own = {storage_address(t) for t in tensors}
    inputs = [v for v in batch.leaves if isinstance(v, Tensor)]
    if template.bound is not None or not all(map(_has_own_memory, inputs)):
        return False
    return all(storage_address(v) not in own for v in inputs)


def _has_own_memory(tensor: Tensor) -> bool:
    """Not so sparse and nested tensors: what is inside of them is not compared."""
    return tensor.layout is torch.strided and not takes_apart(type(tensor))


def _remembered(leaf: Any) -> Any:
    if isinstance(leaf, Tensor) and leaf.numel() <= _SMALL:
        return leaf.detach().clone()
    return None if isinstance(leaf, Tensor) else leaf


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.equal(one, other)
    return one is not None and one is other
