"""Operations onto the tape, and checks of what they hand to Python.

A value that reaches Python may decide what the model does next. A clean one becomes a
*check* on the tape: it holds for all inputs that give the same value. So does a drawn
one, if it is a whole number or a truth value; any other ends the recording.
"""

from typing import Any

import torch
from torch import Tensor

from caveat._torch import OpOverload, storage_address
from caveat.sampling.checks import Same, SameShape
from caveat.sampling.dispatch import is_tensors, op_info
from caveat.sampling.sparse import draws_its_pattern, is_sparse
from caveat.sampling.storages import Storages
from caveat.sampling.tape import Op, Ref
from caveat.sampling.transcript import Transcript

_aten = torch.ops.aten


def write_down(
    transcript: Transcript,
    func: OpOverload,
    args: Any,
    kwargs: Any,
    result: Any,
    inputs: set[int],
) -> None:
    """Write down an operation on these storages that wrote to none of them."""
    noisy = transcript.storages.noise_on_any(inputs)
    if _escapes(transcript, func, args, kwargs, result, noisy):
        return
    unpack = not isinstance(result, Tensor)
    results = list(results_of(result))
    if noisy and (sources := op_info(func).sources):
        _write_down_clean(transcript, func, args, kwargs, results, sources, unpack)
    wanted = [_depends(transcript.storages, t, inputs, noisy) for t in results]
    if not any(wanted):
        return
    # Arguments first: an operation may return its argument, which then gets a new
    # number.
    refs = transcript.refs(args, noisy=noisy)
    keyword_refs = transcript.keyword_refs(kwargs, noisy=noisy)
    numbers = tuple(
        transcript.number_result(t, noisy=noisy) if own else None
        for t, own in zip(results, wanted, strict=True)
    )
    transcript.append(Op(func, refs, keyword_refs, numbers, unpack, noisy=noisy))
    if op_info(func).dynamic_shape and not noisy:
        _check_shapes(transcript, results, numbers)


def results_of(result: Any) -> tuple[Any, ...]:
    """What an operation returned: several, one, or nothing."""
    if isinstance(result, list | tuple):
        return tuple(result)
    return () if result is None else (result,)


# ------------------------------------------------------------ clean results


def _write_down_clean(
    transcript: Transcript,
    func: OpOverload,
    args: Any,
    kwargs: Any,
    results: list[Tensor | None],
    sources: dict[int, tuple[int, ...]],
    unpack: bool,
) -> None:
    """Results of an operation with noisy arguments that no noise can change.

    They are taken off ``results``, and made by the operation on other numbers.
    """
    storages = transcript.storages
    numbers: list[int | None] = [None] * len(results)
    used = False
    for i, tensor in enumerate(results):
        places = sources.get(i)
        if tensor is None or _has_noisy_source(storages, places, args):
            continue
        results[i] = None
        if places:  # else it is made of nothing
            used = True
            numbers[i] = transcript.number_result(tensor, noisy=False)
    if used:
        refs = transcript.refs(_without_noise(storages, args), noisy=False)
        clean = Op(func, refs, kwargs, tuple(numbers), unpack, noisy=False)
        transcript.append(clean)


def _without_noise(storages: Storages, arguments: Any) -> Any:
    """``arguments`` with other numbers in place of noisy ones."""
    if isinstance(arguments, Tensor) and storages.is_noisy(arguments):
        like = torch.zeros_like(arguments)
        storages.add(like)
        return like
    if isinstance(arguments, list | tuple):
        return type(arguments)(_without_noise(storages, item) for item in arguments)
    return arguments


def _depends(
    storages: Storages, tensor: Tensor | None, inputs: set[int], noisy: bool
) -> bool:
    """False for a view of a clean input: ``clean.expand_as(noisy)`` is clean."""
    if tensor is None or not tensor.numel() or is_sparse(tensor):
        return tensor is not None
    storage = storage_address(tensor)
    return not noisy or storages.noise_on(storage) or storage not in inputs


def _has_noisy_source(
    storages: Storages, places: tuple[int, ...] | None, args: Any
) -> bool:
    """Whether the arguments that a result depends on are noisy; None means all."""
    if places is None:
        return True
    return any(storages.is_noisy(args[place]) for place in places if place < len(args))


# ------------------------------------------------------------ what reaches Python


def _escapes(
    transcript: Transcript,
    func: OpOverload,
    args: Any,
    kwargs: Any,
    result: Any,
    noisy: bool,
) -> bool:
    info, is_noisy = op_info(func), transcript.storages.is_noisy
    if not is_tensors(result):
        if not info.metadata:
            _check_number(transcript, func, args, kwargs, result, noisy)
        return True
    why = None
    if noisy and info.dynamic_shape and _decides_shape(transcript.storages, func, args):
        why = f"a drawn value decides the shape of {func}"
    elif noisy and any(t is not None and t.is_nested for t in results_of(result)):
        why = f"{func} made a nested tensor of drawn values"
    elif noisy and draws_its_pattern(func, args, is_noisy):
        why = f"drawn values decide the pattern of {func}"
    transcript.escape = transcript.escape or why
    return transcript.escape is not None


def _check_number(
    transcript: Transcript,
    func: OpOverload,
    args: Any,
    kwargs: Any,
    result: Any,
    noisy: bool,
) -> None:
    if noisy and not isinstance(result, bool | int):
        why = f"{func} handed a drawn value to Python"
        transcript.escape = transcript.escape or why
        return
    refs = transcript.refs(args, noisy=noisy)
    keyword_refs = transcript.keyword_refs(kwargs, noisy=noisy)
    check = Same(func, result)
    transcript.append(Op(check, refs, keyword_refs, (), True, noisy=noisy))


def _check_shapes(
    transcript: Transcript, results: Any, numbers: tuple[int | None, ...]
) -> None:
    for tensor, number in zip(results, numbers, strict=True):
        if number is not None:
            check = SameShape(tuple(tensor.shape))
            transcript.append(Op(check, (Ref(number),), {}, (), True, noisy=False))


def _decides_shape(storages: Storages, func: OpOverload, args: Any) -> bool:
    if func is not _aten.index.Tensor:
        return True
    masks = (
        t for t in args[1] if t is not None and t.dtype in (torch.bool, torch.uint8)
    )
    return any(map(storages.is_noisy, masks))
