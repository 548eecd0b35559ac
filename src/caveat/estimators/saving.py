"""Estimators on disk: a folder with numbers as safetensors and the rest as JSON.

Nothing that is read is run: no pickle, no class looked up by a name from the file.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from caveat import noise
from caveat._version import __version__
from caveat.errors import DataError, InputTypeError, ParameterError
from caveat.estimators.noise_head import NoiseHead
from caveat.estimators.prior import Prior
from caveat.training.schedules import EarlyStopping, Schedule

FORMAT = 1
DESCRIPTION, TENSORS = "estimator.json", "tensors.safetensors"


class Stored(NamedTuple):
    """What a folder holds."""

    parameters: dict[str, Any]
    state: dict[str, Any]
    tensors: dict[str, Tensor]


def write(path: Any, kind: str, stored: Stored) -> None:
    """Write an estimator of some kind into a folder, which is made if need be."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ParameterError(
            f"path must be a folder for the two files of an estimator. Got the file "
            f"{folder}."
        )
    description = {
        "format": FORMAT,
        "version": __version__,
        "estimator": kind,
        "parameters": {n: plain(n, v) for n, v in stored.parameters.items()},
        "state": {n: plain(n, v) for n, v in stored.state.items()},
    }
    text = json.dumps(description, indent=2)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({n: t.contiguous() for n, t in stored.tensors.items()}, folder / TENSORS)
    (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")


def read(path: Any, kind: str) -> Stored:
    """Read an estimator, which must be of that kind."""
    folder = Path(path)
    for name in (DESCRIPTION, TENSORS):
        if not (folder / name).is_file():
            raise DataError(
                f"{folder} must be a folder written by save(), with {DESCRIPTION} and "
                f"{TENSORS}. {name} is absent."
            )
    description = _description(folder / DESCRIPTION)
    if description.get("format") != FORMAT:
        raise DataError(
            f"{folder} must be of format {FORMAT}. Got {description.get('format')!r}, "
            f"written by caveat {description.get('version')!r}; this is caveat "
            f"{__version__}."
        )
    if description.get("estimator") != kind:
        raise ParameterError(
            f"{folder} holds a {description.get('estimator')}, not a {kind}. Use "
            f"{description.get('estimator')}.load."
        )
    try:
        tensors = load_file(folder / TENSORS)
    except SafetensorError as error:
        raise DataError(f"{folder / TENSORS} is damaged: {error}.") from error
    return Stored(description["parameters"], description["state"], tensors)


def _description(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error}.") from error
    if not isinstance(found, dict) or not {"parameters", "state"} <= found.keys():
        raise DataError(f"{path} does not describe an estimator.")
    return found


def plain(name: str, value: Any) -> Any:
    """``value`` as JSON has it: numbers, texts, lists and mappings of them."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return plain(name, value.tolist())
    if isinstance(value, Mapping):
        return {str(k): plain(name, v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(name, v) for v in value]
    if is_dataclass(value):
        return _group_as_plain(name, value)
    raise InputTypeError(
        f"{name} must be made of numbers, texts and lists to be saved. "
        f"Got {type(value).__name__}."
    )


def labels_as_plain(labels: NDArray[Any]) -> dict[str, Any]:
    """Class labels and their type."""
    if labels.dtype.kind not in "biufUO":
        raise InputTypeError(
            f"Classes must be numbers or texts to be saved. Got {labels.dtype}."
        )
    return {"dtype": labels.dtype.str, "values": plain("classes_", labels)}


def labels_from_plain(stored: Mapping[str, Any]) -> NDArray[Any]:
    """The way back from :func:`labels_as_plain`."""
    return np.array(stored["values"], dtype=np.dtype(stored["dtype"]))


_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Schedule,
        EarlyStopping,
        Prior,
        NoiseHead,
        noise.Bernoulli,
        noise.Gaussian,
        noise.DropConnect,
        noise.Concrete,
        noise.Mixture,
        noise.Components,
        noise.LowRank,
        noise.FactorisedGaussian,
    )
}


def _group_as_plain(name: str, group: Any) -> dict[str, Any]:
    """A group of parameters or a family of noise: its kind and its fields."""
    kind = type(group).__name__
    if _KINDS.get(kind) is not type(group):
        raise InputTypeError(
            f"{name} must be of caveat's own kinds ({', '.join(_KINDS)}) to be saved. "
            f"Got {group!r}."
        )
    own = {f.name: plain(name, getattr(group, f.name)) for f in fields(group)}
    return {"kind": kind, **own}


def from_plain(stored: Any) -> Any:
    """A parameter as it was before :func:`plain`; lists come back as tuples.

    Parameters
    ----------
    stored : object
        As JSON has it.

    Returns
    -------
    object
        Only of the kinds known here, whatever the file says.
    """
    if isinstance(stored, list):
        return tuple(from_plain(value) for value in stored)
    if not isinstance(stored, Mapping):
        return stored
    values = {n: from_plain(v) for n, v in stored.items() if n != "kind"}
    return _KINDS[stored["kind"]](**values)
