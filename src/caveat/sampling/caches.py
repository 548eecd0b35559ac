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

from caveat.sampling.inputs import Batch, key_of
from caveat.sampling.trees import flatten, leaves_of, objects_of, unflatten

_LENGTH = "get_seq_length"  # how a cache says how long it is
_CACHE = re.compile(r"past|cache|kv", re.IGNORECASE)
# Where tokens come in, the most telling name first; else the first tensor holds them.
_TOKENS = ("decoder_input_ids", "decoder_inputs_embeds", "input_ids", "inputs_embeds")
_OF_ENCODER = frozenset(("attention_mask", "input_ids", "inputs_embeds", "head_mask"))


def stated_past(batch: Batch) -> int | None:
    """How many tokens the cache of a call says it holds; None if there is no word."""
    if not any(map(_says_length, batch.structure.classes())):
        return None
    objects = objects_of(batch.leaves, batch.structure)
    cache = next(made for made in objects if _says_length(type(made)))
    try:
        return int(getattr(cache, _LENGTH)())
    except (TypeError, ValueError, NotImplementedError):
        return None


def _says_length(kind: type) -> bool:
    return callable(getattr(kind, _LENGTH, None))


def grown_past(batch: Batch, after: Any) -> int | None:
    """How many tokens the cache of a call holds, as it grows by those of the call.

    ``after`` is all that the pass returned or may have changed.
    """
    new, found = new_tokens(batch), set()
    later = _tensors(after)
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
        _CACHE.search(name) and isinstance(leaf, Tensor)
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
    source = _source_length(batch)
    kinds = tuple(
        _kind_in_cache(leaf, length)
        if any(map(_says_length, above))
        else _kind_beside(leaf, (length, source), batch.axis if own else None)
        for leaf, own, above in zip(
            batch.leaves, batch.batched, batch.structure.kinds(), strict=True
        )
    )
    rows = batch.batched, batch.axis, batch.part
    return batch.structure.key, past > 0, kinds, rows


def _kind_in_cache(leaf: Any, length: int) -> Any:
    if isinstance(leaf, Tensor):
        return leaf.dtype, leaf.dim() > 2 and length > leaf.shape[-2]
    return None if type(leaf) is int else key_of(leaf)  # numbers count tokens


def _source_length(batch: Batch) -> int | None:
    """How many tokens an encoder has read, if its output is among the arguments."""
    found = {
        leaf.shape[1]
        for name, leaf in zip(_names(batch), batch.leaves, strict=True)
        if name == "encoder_outputs" and isinstance(leaf, Tensor) and leaf.dim() == 3
    }
    return found.pop() if len(found) == 1 else None


def _kind_beside(leaf: Any, lengths: tuple[int, int | None], rows: int | None) -> Any:
    """What an argument beside the cache is like, whatever the lengths of texts.

    Those are of the sequence up to now, and of what an encoder has read.
    """
    if not isinstance(leaf, Tensor):
        return key_of(leaf)
    length, source = lengths
    is_mask = leaf.dim() == 2  # of all tokens; larger ones have fixed sizes
    sizes: list[Any] = ["all" if is_mask and n == length else n for n in leaf.shape]
    if source is not None and leaf.dim() in (2, 3) and leaf.shape[1] == source:
        sizes[1] = "source"
    if rows is not None:
        sizes[rows] = "rows"
    return tuple(sizes), leaf.dtype, leaf.device, leaf.layout


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
    args, kwargs = _numbers(batch)
    new, kept, leaves = new_tokens(batch), {}, list(batch.leaves)
    for name, value in kwargs.items():
        numbers = leaves_of(value)
        tensors = [v for v in (leaves[i] for i in numbers) if isinstance(v, Tensor)]
        if _says_length(type(value)) or any(t.dim() > 3 for t in tensors):
            continue  # the cache; a mask of attention, which would not fit
        kept[name] = value
        if name.endswith("attention_mask") and len(numbers) == len(tensors) == 1:
            (mask,), (number,) = tensors, numbers
            leaves[number] = mask[..., -new:] if mask.shape[-1] == past + new else mask
    if len(kept) == len(kwargs):
        return None
    numbers, structure = flatten((args, kept))
    return replace(
        batch,
        leaves=tuple(leaves[i] for i in numbers),
        structure=structure,
        batched=tuple(batch.batched[i] for i in numbers),
    )


# ------------------------------------------------------------ arguments


def _numbers(batch: Batch) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, with numbers in the place of leaves."""
    args, kwargs = unflatten(range(len(batch.leaves)), batch.structure)
    return args, kwargs


def _names(batch: Batch) -> list[str]:
    """The argument that each leaf belongs to; "" for those without a name."""
    args, kwargs = _numbers(batch)
    names = [""] * len(batch.leaves)
    by_position = zip(batch.positional, args, strict=False)
    for name, argument in (*by_position, *kwargs.items()):
        for number in leaves_of(argument):
            names[number] = names[number] or name
    return names


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in leaves_of(value) if isinstance(leaf, Tensor)]


def _main(batch: Batch) -> int:
    """The leaf that holds the tokens."""
    names, inside = _names(batch), tuple(batch.structure.inside())
    tensors = [i for i, leaf in enumerate(batch.leaves) if isinstance(leaf, Tensor)]
    tensors.sort(key=inside.__getitem__)  # what is inside of objects comes last
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
    args, kwargs = _numbers(batch)
    alone = {v for v in (*args, *kwargs.values()) if isinstance(v, int)}
    inside = batch.structure.inside()
    described = zip(names, batch.leaves, inside, strict=True)
    for i, (name, leaf, is_inside) in enumerate(described):
        if not isinstance(leaf, Tensor) or i == main or name == "cache_position":
            continue
        in_container = i not in alone and leaf.dim() > 2
        if is_inside or in_container or _CACHE.search(name):
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
