"""Writes onto the tape: in place, through views, ``out=``, item assignment.

Three rules cover them:

- noise written into a clean storage: each draw starts from a copy of it;
- a clean write into a storage that a noisy operation has read: that operation gets a
  snapshot;
- a write is alive as long as its storage is (``Tape.drop_dead``).
"""

from typing import Any

import torch
from torch import Tensor

from caveat._torch import OpOverload, storage_address
from caveat.errors import UnsupportedModelError
from caveat.sampling.dispatch import (
    same_place,
    storage_copy,
    tensors_in,
    whole_storage,
)
from caveat.sampling.operations import results_of
from caveat.sampling.sparse import is_sparse, parts
from caveat.sampling.storages import Tracked
from caveat.sampling.tape import Op, Ref, map_refs
from caveat.sampling.transcript import Transcript

_aten = torch.ops.aten

_SPARSE = """The model changes a sparse tensor in place ({func}) that it did not
make in this pass. Write it without the underscore: a = a * 2 in place of a.mul_(2)."""


def prepare_write(
    transcript: Transcript, targets: list[Tensor], arguments: Any
) -> None:
    """An operation with these arguments is about to write to ``targets``."""
    storages = transcript.storages
    read = {storage_address(t) for t in tensors_in(arguments)}
    noisy, matters = storages.noise_on_any(read), storages.matter(read)
    for target in targets:
        storage = storage_address(target)
        if storages.noise_on(storage):
            continue
        tracked = storages.tracked(storage)
        becomes = noisy if tracked is not None else matters
        if not becomes and not transcript.was_read(storage):
            continue
        pristine = storage_copy(target)
        if tracked is None:
            for number in transcript.read_on(storage):
                transcript.move_constant(number, storage, pristine)
            if matters:
                source = Ref(transcript.constant(pristine))
                _start_from(transcript, source, pristine, target, noisy=noisy)
        elif noisy:
            _turn_noisy(transcript, tracked, pristine, target)
        else:
            _snapshot(transcript, tracked, pristine, storage)


def write_down_write(
    transcript: Transcript,
    func: OpOverload,
    args: Any,
    kwargs: Any,
    result: Any,
    targets: list[Tensor],
) -> None:
    """Write down an operation that has written to ``targets``."""
    storages = transcript.storages
    read = {storage_address(t) for t in tensors_in((*args, *kwargs.values()))}
    if not any(storages.tracked(storage_address(t)) for t in targets):
        storages.add_result(result, read)
        return
    noisy = storages.noise_on_any(read)
    refs = transcript.refs(args, noisy=noisy)
    keyword_refs = transcript.keyword_refs(kwargs, noisy=noisy)
    written = tuple(transcript.number(t, noisy=noisy) for t in targets)
    unpack = not isinstance(result, Tensor)
    ids = set(map(id, targets))
    numbers = tuple(
        None if t is None or id(t) in ids else transcript.number_result(t, noisy=noisy)
        for t in results_of(result)
    )
    op = Op(func, refs, keyword_refs, numbers, unpack, written, noisy=noisy)
    transcript.append(op)


def note_sparse_write(
    transcript: Transcript, func: OpOverload, target: Tensor, arguments: Any
) -> None:
    """A sparse ``target`` is about to get new values, and perhaps new indices."""
    storages = transcript.storages
    addresses = [storage_address(part) for part in parts(target)]
    if not all(map(storages.is_fresh, addresses)):
        raise UnsupportedModelError(_SPARSE.format(func=func))
    if any(map(storages.is_noisy, tensors_in(arguments))):
        how = f"{func} changed a sparse tensor that depends on noise"
        transcript.escape = how
    elif any(map(transcript.was_read, addresses)):
        transcript.escape = f"{func} changed a sparse tensor after noise had met it"
    transcript.bound = f"{func} changed a sparse tensor"


def rename(op: Op, names: dict[int, Ref]) -> None:
    """Let ``op`` read other values."""

    def new(number: int) -> Ref:
        return names.get(number, Ref(number))

    op.args = map_refs(new, op.args)
    op.kwargs = {k: map_refs(new, v) for k, v in op.kwargs.items()}


# ------------------------------------------------------------ storages change hands


def _turn_noisy(
    transcript: Transcript, tracked: Tracked, pristine: Tensor, target: Tensor
) -> None:
    """Noise is about to be written where there was none."""
    storage = storage_address(target)
    for number in transcript.read_on(storage):
        transcript.move_kept(number, storage, pristine)
    whole = transcript.tape.new_value(pristine, tracked.group)
    args = (Ref(tracked.base),)
    transcript.append(Op(whole_storage, args, {}, (whole,), noisy=False))
    transcript.kept[whole] = pristine
    _start_from(transcript, Ref(whole), pristine, target, noisy=True)


def _start_from(
    transcript: Transcript,
    source: Ref,
    pristine: Tensor,
    target: Tensor,
    *,
    noisy: bool,
) -> None:
    """The storage of ``target`` starts anew, as a copy of ``source``."""
    group = transcript.storages.new_group()
    base = transcript.tape.new_value(pristine, group)
    transcript.append(Op(_aten.clone.default, (source,), {}, (base,), noisy=noisy))
    transcript.storages.track(target, base, group, noisy=noisy)


def _snapshot(
    transcript: Transcript, tracked: Tracked, pristine: Tensor, storage: int
) -> None:
    """Noisy operations so far shall see what is about to be written over."""
    tape, kept = transcript.tape, transcript.kept
    copy = tape.new_value(pristine, transcript.storages.new_group())
    args = (Ref(tracked.base),)
    transcript.append(Op(storage_copy, args, {}, (copy,), noisy=False))
    renamed: dict[int, Ref] = {}
    for number in transcript.read_on(storage):
        if is_sparse(kept[number]):
            transcript.escape = "a sparse tensor was written after noise had met it"
            continue
        seen = same_place(kept.pop(number), pristine)
        new = tape.new_value(seen, tape.values[copy].group)
        where = (tuple(seen.shape), seen.stride(), seen.storage_offset())
        view = _aten.as_strided.default
        transcript.append(Op(view, (Ref(copy), *where), {}, (new,), noisy=False))
        kept[new] = seen
        renamed[number] = Ref(new)
    for op in tape.ops:
        if op.noisy:
            rename(op, renamed)
