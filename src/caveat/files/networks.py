"""A user's own network: its weights, and what its class has to be like.

The class is never looked up: whoever loads a file brings an object of it.
"""

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from caveat.errors import CaveatWarning, InputTypeError, ParameterError

Values = dict[str, Any]


def network_apart(model: nn.Module) -> Values:
    """Weights, buffers and a description of a network.

    Parameters
    ----------
    model : nn.Module
        Any; its state must be tensors.

    Returns
    -------
    dict
        ``class`` is an import path, for people; ``modules`` what it is made of;
        ``state`` its ``state_dict`` without twins, which ``same`` lists; ``others``
        buffers that are not part of it.
    """
    state = model.state_dict()
    for name, value in state.items():
        if not isinstance(value, Tensor) or value.layout != torch.strided:
            raise InputTypeError(
                f"{name} of the state of {type(model).__name__} must be a dense tensor "
                f"to be saved. Got {type(value).__name__}."
            )
    kept, same = _without_twins(state)
    others = {n: b for n, b in model.named_buffers() if n not in state}
    return {
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "modules": _modules(model),
        "state": {n: t.detach().cpu().clone() for n, t in kept.items()},
        "same": same,
        "others": {n: b.detach().cpu().clone() for n, b in others.items()},
    }


def network_together(stored: Values, model: nn.Module | None) -> nn.Module:
    """Fill the network that the caller brings.

    Parameters
    ----------
    stored : dict
        Of :func:`network_apart`.
    model : nn.Module or None
        A network of the same class; changed only if all of the file fits.

    Returns
    -------
    nn.Module
        The same object.
    """
    if model is None:
        raise ParameterError(
            f"The file holds the weights of a {stored['class']}, and no class is "
            f"imported by its name. Pass an object of it: "
            f"load(path, model={stored['class'].rpartition('.')[2]}(...))."
        )
    if not isinstance(model, nn.Module):
        raise InputTypeError(
            f"model must be a torch.nn.Module, a {stored['class']}. "
            f"Got {type(model).__name__}."
        )
    state = stored["state"] | {n: stored["state"][of] for n, of in stored["same"]}
    _check(f"{stored['class']}", model.state_dict(), state)
    buffers = {n: b for n, b in model.named_buffers() if n in stored["others"]}
    _check(f"{stored['class']}", buffers, stored["others"])
    _compare(stored["modules"], _modules(model))
    model.load_state_dict(state)
    with torch.no_grad():
        for name, value in stored["others"].items():
            buffers[name].copy_(value)
    return model


def _without_twins(
    state: dict[str, Tensor],
) -> tuple[dict[str, Tensor], list[list[str]]]:
    """Tensors that are not the same memory as an earlier one, and those that are."""
    kept: dict[str, Tensor] = {}
    same: list[list[str]] = []
    seen: dict[Any, str] = {}
    for name, value in state.items():
        place = (value.data_ptr(), tuple(value.shape), value.stride(), value.dtype)
        if value.numel() and place in seen:
            same.append([name, seen[place]])
        else:
            seen[place] = name
            kept[name] = value
    return kept, same


def _modules(model: nn.Module) -> list[list[str]]:
    """(path, class, what it prints of itself) of all modules."""
    found = model.named_modules(remove_duplicate=False)
    return [[name, type(m).__qualname__, m.extra_repr()] for name, m in found]


def _check(what: str, mine: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    """Names, shapes and types, before anything is changed."""
    missing, strange = sorted(set(theirs) - set(mine)), sorted(set(mine) - set(theirs))
    if missing or strange:
        raise ParameterError(
            f"model must be like the saved {what}. It lacks {missing[:3]} of the file "
            f"and has {strange[:3]} beside it."
        )
    for name, value in theirs.items():
        own = mine[name]
        if own.shape != value.shape or own.dtype != value.dtype:
            raise ParameterError(
                f"{name} of model must be of shape {tuple(value.shape)} and "
                f"{value.dtype}, as saved. Got {tuple(own.shape)} and {own.dtype}."
            )


def _compare(saved: list[list[str]], given: list[list[str]]) -> None:
    """A dropout rate is no weight: say if it is another one."""
    theirs = {name: (kind, text) for name, kind, text in saved}
    for name, kind, text in given:
        if name and theirs.get(name, (kind, text)) != (kind, text):
            before = "{}({})".format(*theirs[name])
            warnings.warn(
                f"{name!r} of model is {kind}({text}), and was {before} when it was "
                f"saved: predictions will differ from those of the saved one.",
                CaveatWarning,
                stacklevel=4,
            )
