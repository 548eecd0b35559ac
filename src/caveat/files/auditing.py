"""The audit of a network that is named on a command line."""

import importlib
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from caveat.errors import DataError, InputTypeError, ParameterError
from caveat.sampling import Sites, audit


def audit_built(name: str, *, weights: Any = None, shapes: Sequence[str] = ()) -> Sites:
    """Audit what a function of the user builds.

    Parameters
    ----------
    name : str
        ``package.module:function``, looked for in the current folder, too. The user
        names it, and it is run.
    weights : str or Path, optional
        A safetensors file with the state of the network.
    shapes : sequence of str
        Of random inputs, such as ``"4,3,32,32"``; not needed if the function returns
        the network and its inputs.

    Returns
    -------
    Sites
    """
    network, inputs = _built(name)
    given = tuple(_random(shape) for shape in shapes) or inputs
    if not given:
        raise ParameterError(
            f"An audit runs the network on an input. {name} returns a network alone: "
            f"give --shape, such as 4,10 for four rows of ten numbers, or let it "
            f"return the network and its inputs."
        )
    if weights is not None:
        _fill(network, Path(weights))
    return audit(network, *given)


def _built(name: str) -> tuple[nn.Module, tuple[Any, ...]]:
    module, sign, function = name.partition(":")
    if name.endswith((".onnx", ".pt2")):
        raise ParameterError(
            f"An audit runs a torch.nn.Module, named as package.module:function. Got "
            f"the exported graph {name!r}, of which exporters leave dropout out or fix "
            f"it: name the function that builds the module it was made from."
        )
    if not (module and sign and function):
        raise ParameterError(
            f"The network must be named as package.module:function. Got {name!r}."
        )
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    if module.endswith(".py"):
        raise ParameterError(
            f"A module is named as in an import, {module[:-3].replace('/', '.')}:"
            f"{function}. Got {name!r}."
        )
    try:
        build = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ParameterError(f"{name} cannot be imported: {error}.") from error
    except Exception as error:  # of the user's code
        raise ParameterError(f"{name} cannot be imported: {_said(error)}.") from error
    try:
        made = build() if not isinstance(build, nn.Module) else build
    except Exception as error:
        raise ParameterError(
            f"{name} must return a network when it is called without arguments. It "
            f"raised {_said(error)}."
        ) from error
    network, *inputs = made if isinstance(made, tuple) else (made,)
    if not isinstance(network, nn.Module):
        raise InputTypeError(
            f"{name} must return a torch.nn.Module, or one and its inputs. "
            f"Got {type(network).__name__}."
        )
    return network, tuple(inputs)


def _said(error: Exception) -> str:
    """An error of the user's code, and where it was raised."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({place.filename}, line {place.lineno})"


def _random(shape: str) -> Tensor:
    try:
        sizes = [int(size) for size in shape.split(",")]
    except ValueError as error:
        raise ParameterError(
            f"A shape must be whole numbers, such as 4,10. Got {shape!r}."
        ) from error
    if min(sizes) < 1:
        raise ParameterError(f"All sizes of a shape must be above 0. Got {shape!r}.")
    return torch.randn(sizes, generator=torch.Generator().manual_seed(0))


def _fill(network: nn.Module, path: Path) -> None:
    if not path.is_file():
        raise DataError(f"{path} must be a file of weights. There is none.")
    try:
        network.load_state_dict(load_file(path))
    except SafetensorError as error:
        raise DataError(f"{path} is no whole safetensors file: {error}.") from error
    except RuntimeError as error:
        raise DataError(f"{path} does not fit the network: {error}") from error
