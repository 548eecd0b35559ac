"""What a call says of the tokens before it: those in its key-value cache.

With a cache a model runs on the new tokens only. How many came before, the cache says
itself, or it shows in how it grows during a pass.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from caveat._torch import pytree
from caveat.sampling.inputs import Batch
from caveat.sampling.objects import tensors_inside

_CACHE = re.compile(r"past|cache|kv", re.IGNORECASE)
# Where tokens come in, the most telling name first; else the first tensor holds them.
_TOKENS = ("decoder_input_ids", "decoder_inputs_embeds", "input_ids", "inputs_embeds")
_OF_ENCODER = frozenset(("attention_mask", "input_ids", "inputs_embeds", "head_mask"))


def stated_past(batch: Batch) -> int | None:
    """How many tokens the cache of a call says it holds; None if there is no word."""
    for leaf in batch.objects:
        length = getattr(leaf, "get_seq_length", None)
        if callable(length):
            try:
                return int(length())
            except (TypeError, ValueError, NotImplementedError):
                return None
    return None


def grown_past(batch: Batch, after: Any) -> int | None:
    """How many tokens the cache of a call holds, as it grows by those of the call.

    ``after`` is all that the pass returned or may have changed.
    """
    new, found = new_tokens(batch), set()
    later = tensors_inside(after)
    for tensor in _cache_tensors(batch):
        grown = {_grown_axis(tensor, other, new) for other in later} - {None}
        found |= {tensor.shape[axis] for axis in grown if axis is not None}
    return found.pop() if len(found) == 1 else None


def may_have_cache(batch: Batch) -> bool:
    """Whether there is anything that could hold earlier tokens."""
    return any(True for _ in _cache_tensors(batch)) or stated_past(batch) is not None


def is_called_cache(batch: Batch) -> bool:
    """Whether an argument with tensors in it is called a cache."""
    return any(
        _CACHE.search(name) and tensors_inside(leaf)
        for name, leaf in zip(_names(batch), batch.leaves, strict=True)
    )


def kind_of_call(batch: Batch) -> Any:
    """What cached calls must share to be treated alike: not how many tokens there are.

    That is for caches that say their length. What matters is whether the sequence
    outgrows the tensors that hold it (a window that begins to slide).
    """
    past = stated_past(batch)
    if past is None:
        return batch.signature
    length = past + new_tokens(batch)
    kinds: list[Any] = []
    for leaf, own in zip(batch.leaves, batch.batched, strict=True):
        if isinstance(leaf, Tensor):
            is_mask = leaf.dim() == 2  # of all tokens; larger ones have fixed sizes
            sizes = tuple("all" if is_mask and n == length else n for n in leaf.shape)
            kinds.append((sizes[1:] if own and not batch.axis else sizes, leaf.dtype))
        elif callable(getattr(leaf, "get_seq_length", None)):
            inside = [t for t in tensors_inside(leaf) if t.dim() > 2]
            kinds.append(
                (type(leaf).__qualname__, *(length > t.shape[-2] for t in inside))
            )
        else:
            kinds.append(batch.kind_inside(leaf))
    return str(batch.structure), past > 0, tuple(kinds), batch.axis, batch.part


def new_tokens(batch: Batch) -> int:
    """How many tokens a call has."""
    tensor = batch.leaves[_main(batch)]
    axis = _token_axis(batch)
    return tensor.shape[axis] if tensor.dim() > axis else 1


def longer(batch: Batch, past: int) -> Batch:
    """The batch with its last token twice."""
    main, new = _main(batch), new_tokens(batch)
    names = _names(batch)
    decodes = names[main].startswith("decoder_")
    cached = {id(tensor) for tensor in _cache_tensors(batch)}
    leaves = list(batch.leaves)
    for i, (name, leaf) in enumerate(zip(names, batch.leaves, strict=True)):
        if not isinstance(leaf, Tensor) or id(leaf) in cached:
            continue
        if i == main:
            leaves[i] = _with_last_twice(leaf, _token_axis(batch))
        elif not (name.startswith("encoder") or (decodes and name in _OF_ENCODER)):
            for axis in _axes_of_tokens(leaf, batch, (new, past + new)):
                leaves[i] = _with_last_twice(leaves[i], axis)
    return replace(batch, leaves=tuple(leaves))


def without_cache(batch: Batch, past: int) -> Batch | None:
    """The new tokens as if there were none before; None if that cannot be said."""
    args, kwargs = batch.arguments
    new, kept = new_tokens(batch), {}
    for name, value in kwargs.items():
        tensors = tensors_inside(value)
        if hasattr(value, "get_seq_length") or any(t.dim() > 3 for t in tensors):
            continue  # the cache; a mask of attention, which would not fit
        kept[name] = value
        if name.endswith("attention_mask") and value.shape[-1] == past + new:
            kept[name] = value[..., -new:]
    if len(kept) == len(kwargs):
        return None
    leaves, structure = pytree.tree_flatten((args, kept))
    return replace(batch, leaves=tuple(leaves), structure=structure)


# ------------------------------------------------------------ arguments


def _names(batch: Batch) -> list[str]:
    """The argument that each leaf belongs to; "" for those without a name."""
    numbers = list(range(len(batch.leaves)))
    args, kwargs = pytree.tree_unflatten(numbers, batch.structure)
    names = [""] * len(numbers)
    by_position = zip(batch.positional, args, strict=False)
    for name, argument in (*by_position, *kwargs.items()):
        for number in pytree.tree_leaves(argument):
            names[number] = name
    return names


def _main(batch: Batch) -> int:
    """The leaf that holds the tokens."""
    names = _names(batch)
    tensors = [i for i, leaf in enumerate(batch.leaves) if isinstance(leaf, Tensor)]
    for name in _TOKENS:
        for i in tensors:
            if names[i] == name:
                return i
    return tensors[0]


def _token_axis(batch: Batch) -> int:
    return 0 if batch.axis == 1 else 1


def _cache_tensors(batch: Batch) -> Iterator[Tensor]:
    """Tensors that may hold what is known of earlier tokens."""
    names, main = _names(batch), _main(batch)
    args, kwargs = pytree.tree_unflatten(list(batch.leaves), batch.structure)
    alone = {id(v) for v in (*args, *kwargs.values()) if isinstance(v, Tensor)}
    for i, (name, leaf) in enumerate(zip(names, batch.leaves, strict=True)):
        if i == main or name == "cache_position":
            continue
        if not isinstance(leaf, Tensor):
            yield from tensors_inside(leaf)
        elif _CACHE.search(name) or (id(leaf) not in alone and leaf.dim() > 2):
            yield leaf


def _grown_axis(before: Tensor, after: Tensor, by: int) -> int | None:
    if before.dim() != after.dim():
        return None
    grown = [d for d in range(before.dim()) if before.shape[d] != after.shape[d]]
    if len(grown) != 1 or after.shape[grown[0]] != before.shape[grown[0]] + by:
        return None
    return grown[0]


def _axes_of_tokens(tensor: Tensor, batch: Batch, sizes: tuple[int, int]) -> list[int]:
    """Axes of another argument (a mask, positions) that grow with a token."""
    dims = tensor.dim()
    if dims == 1:
        is_of_rows = tensor.shape[0] == batch.rows and batch.rows > 1
        axes = [] if is_of_rows else [0]
    elif dims == 4:  # a mask of (rows, heads, queries, keys)
        axes = [2, 3]
    elif dims == 3 and tensor.shape[0] != batch.rows:  # kinds of positions first
        axes = [2]
    else:
        axes = [_token_axis(batch)] if dims > _token_axis(batch) else []
    return [axis for axis in axes if tensor.shape[axis] in sizes]


def _with_last_twice(tensor: Tensor, axis: int) -> Tensor:
    last = tensor.narrow(axis, tensor.shape[axis] - 1, 1)
    return torch.cat([tensor, last], axis)
