"""Open Inference Protocol v2: requests and answers, as JSON and with binary tensors."""

import json
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from caveat.serve.answers import Arrays
from caveat.serve.limits import Limits
from caveat.serve.models import ServedModel
from caveat.serve.reading import read_json
from caveat.serve.refusing import quoted, refuse
from caveat.serve.tensors import (
    BYTES,
    TYPES,
    checked_shape,
    from_bytes,
    from_json,
    to_bytes,
)

HEADER = "Inference-Header-Content-Length"
_SIZE, _OUT, _ALL_OUT = "binary_data_size", "binary_data", "binary_data_output"
_MOST_NUMBERS = 2**24
_OF_OUTPUT = frozenset({"name", "parameters"})
_OF_INPUT = _OF_OUTPUT | {"shape", "datatype", "data"}
_OF_REQUEST = frozenset({"id", "inputs", "outputs", "parameters"})


@final
@dataclass(frozen=True)
class InferRequest:
    """What a request of the protocol says.

    Attributes
    ----------
    id : str or None
    inputs : dict of str to array
    outputs : dict of str to bool
        Those wanted, and whether as bytes.
    parameters : dict
        All that are not of the binary extension.
    """

    id: str | None
    inputs: dict[str, NDArray[Any]]
    outputs: dict[str, bool]
    parameters: dict[str, Any]


def read_request(
    body: bytes, header: str | None, model: ServedModel, limits: Limits
) -> InferRequest:
    """The body of an infer request.

    Parameters
    ----------
    body : bytes
        JSON, and the bytes of tensors after it.
    header : str or None
        How many bytes of it are JSON; None: all.
    model : ServedModel
        That is asked.
    limits : Limits
        Of the server.

    Returns
    -------
    InferRequest
    """
    size = _header_size(header, len(body))
    plain, tail = read_json(body[:size]), body[size:]
    _refuse_others(plain, _OF_REQUEST)
    name = plain.get("id")
    if name is not None and not (isinstance(name, str) and len(name) <= 1000):
        refuse(f"id must be a text. Got {quoted(name)}.")
    parameters = _parameters(plain)
    all_binary = _flag(parameters.pop(_ALL_OUT, False), _ALL_OUT)
    inputs = _inputs(plain.get("inputs"), tail, limits)
    outputs = _outputs(plain.get("outputs"), model, all_binary)
    return InferRequest(name, inputs, outputs, parameters)


def _header_size(header: str | None, length: int) -> int:
    if header is None:
        return length
    if not (header.isascii() and header.isdigit() and len(header) < 12):
        refuse(f"{HEADER} must be a whole number. Got {quoted(header)}.")
    if int(header) > length:
        refuse(f"{HEADER} is {int(header)}, and the body has {length} bytes.")
    return int(header)


def _inputs(given: Any, tail: bytes, limits: Limits) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {}
    place = 0
    for item in _items(given, "inputs"):
        name = _name(item, found, "inputs")
        kind = item.get("datatype")
        if not isinstance(kind, str) or (kind not in TYPES and kind != BYTES):
            refuse(
                f"The datatype of {quoted(name)} must be one of {', '.join(TYPES)} and "
                f"BYTES. Got {quoted(kind)}."
            )
        _refuse_others(item, _OF_INPUT, "input", name)
        shape = checked_shape(name, item.get("shape"), _MOST_NUMBERS)
        if shape[0] > limits.max_rows:
            refuse(
                f"A request must have at most {limits.max_rows} rows. Got {shape[0]}."
            )
        own = _parameters(item, "input", name)
        size = own.pop(_SIZE, None)
        if own:
            refuse(f"{quoted(name)} has parameters that are not known: {quoted(own)}.")
        if size is None:
            found[name] = from_json(name, kind, shape, item.get("data"))
            continue
        if type(size) is not int or not 0 <= size <= len(tail) - place:
            refuse(
                f"{_SIZE} of {quoted(name)} must be a whole number of bytes that are "
                f"there. Got {quoted(size)}, with {len(tail) - place} left."
            )
        if "data" in item:
            refuse(f"{quoted(name)} has both data and {_SIZE}.")
        found[name] = from_bytes(name, kind, shape, tail[place : place + size])
        place += size
    if place != len(tail):
        refuse(f"{len(tail) - place} bytes after the JSON belong to no input.")
    return found


def _outputs(given: Any, model: ServedModel, all_binary: bool) -> dict[str, bool]:
    known = [info.name for info in model.outputs]
    if given is None or given == []:
        return dict.fromkeys(known, all_binary)
    found: dict[str, bool] = {}
    for item in _items(given, "outputs"):
        name = _name(item, found, "outputs")
        if name not in known:
            refuse(f"There is no output {quoted(name)}. Known: {', '.join(known)}.")
        _refuse_others(item, _OF_OUTPUT, "output", name)
        own = _parameters(item, "output", name)
        found[name] = _flag(own.pop(_OUT, all_binary), _OUT)
        if own:
            refuse(f"{quoted(name)} has parameters that are not known: {quoted(own)}.")
    return found


def _items(given: Any, what: str) -> list[dict[str, Any]]:
    fine = isinstance(given, list) and 0 < len(given) <= 10_000
    if not fine or not all(isinstance(item, dict) for item in given):
        refuse(f"{what} must be a list of objects. Got {quoted(given)}.")
    return list(given)


def _name(item: dict[str, Any], known: dict[str, Any], what: str) -> str:
    name = item.get("name")
    if not isinstance(name, str):
        refuse(f"All {what} must have a name. Got {quoted(name)}.")
    if name in known:
        refuse(f"The name {quoted(name)} stands twice among the {what}.")
    return name


def _refuse_others(
    item: dict[str, Any],
    known: frozenset[str],
    what: str = "request",
    name: str | None = None,
) -> None:
    """What nobody reads is not to be taken for heard."""
    if not item.keys() <= known:
        others = item.keys() - known
        refuse(
            f"There is no {quoted(min(others))} in {_called(what, name)}. Known: "
            f"{', '.join(sorted(known))}; n_draws and its kin stand in the parameters "
            f"of the request."
        )


def _called(what: str, name: str | None) -> str:
    return f"the {what}" if name is None else f"the {what} {quoted(name)}"


def _parameters(
    item: dict[str, Any], what: str = "request", name: str | None = None
) -> dict[str, Any]:
    found = item.get("parameters")
    if found is None:
        return {}
    if not isinstance(found, dict):
        refuse(
            f"The parameters of {_called(what, name)} must be an object. "
            f"Got {quoted(found)}."
        )
    return dict(found)


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        refuse(f"{name} must be true or false. Got {quoted(value)}.")
    return value


def write_response(
    name: str, asked: InferRequest, found: Arrays, model: ServedModel, notes: Any
) -> tuple[bytes, dict[str, str]]:
    """Body and headers of an answer.

    Parameters
    ----------
    name : str
        Of the model.
    asked : InferRequest
        What is answered.
    found : dict of str to array
        All outputs wanted.
    model : ServedModel
        That answered.
    notes : sequence of str
        What had to be made up.

    Returns
    -------
    bytes, dict
    """
    kinds = {info.name: info.datatype for info in model.outputs}
    outputs, tails = [], []
    for output, binary in asked.outputs.items():
        values = found[output]
        own: dict[str, Any] = {
            "name": output,
            "datatype": kinds[output],
            "shape": list(values.shape),
        }
        if binary:
            tails.append(to_bytes(values, kinds[output]))
            own["parameters"] = {_SIZE: len(tails[-1])}
        else:
            own["data"] = np.asarray(values).reshape(-1).tolist()
        outputs.append(own)
    plain: dict[str, Any] = {"model_name": name, "model_version": "1"}
    if asked.id is not None:
        plain["id"] = asked.id
    if notes:
        plain["parameters"] = {"notes": "; ".join(notes)}
    head = json.dumps(plain | {"outputs": outputs}, allow_nan=False).encode()
    if not tails:
        return head, {"content-type": "application/json"}
    headers = {"content-type": "application/octet-stream", HEADER: str(len(head))}
    return b"".join((head, *tails)), headers
