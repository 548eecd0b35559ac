"""Tensors of the protocol: their types, and their bytes."""

import math
import struct
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from caveat.serve.refusing import quoted, refuse

TYPES: dict[str, Any] = {
    "BOOL": np.dtype(np.bool_),
    **{f"INT{n}": np.dtype(f"<i{n // 8}") for n in (8, 16, 32, 64)},
    **{f"UINT{n}": np.dtype(f"<u{n // 8}") for n in (8, 16, 32, 64)},
    **{f"FP{n}": np.dtype(f"<f{n // 8}") for n in (16, 32, 64)},
}
BYTES = "BYTES"
_MOST_AXES = 8


@final
@dataclass(frozen=True)
class TensorInfo:
    """What is told of an input or an output.

    Attributes
    ----------
    name : str
    datatype : str
        ``FP64`` and so on; ``BYTES`` for texts.
    shape : tuple of int
        -1 for rows.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]

    @property
    def plain(self) -> dict[str, Any]:
        """As the protocol has it."""
        return {
            "name": self.name,
            "datatype": self.datatype,
            "shape": list(self.shape),
        }


def checked_shape(name: str, shape: Any, most: int) -> tuple[int, ...]:
    """Sizes of axes, with at most ``most`` numbers in all."""
    fine = isinstance(shape, list) and 1 <= len(shape) <= _MOST_AXES
    if not fine or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
        refuse(
            f"The shape of {quoted(name)} must be a list of 1 to {_MOST_AXES} whole "
            f"numbers of at least 0. Got {quoted(shape)}."
        )
    # An axis of 0 makes no shape small: numpy multiplies the others all the same.
    count = math.prod(max(size, 1) for size in shape)
    if count > most:
        refuse(
            f"{quoted(name)} must hold at most {most} numbers. Got the shape "
            f"{quoted(shape)}."
        )
    return tuple(shape)


def from_bytes(
    name: str, kind: str, shape: tuple[int, ...], raw: bytes
) -> NDArray[Any]:
    """A tensor of the binary extension."""
    count = math.prod(shape)
    if kind == BYTES:
        return _texts(name, count, raw).reshape(shape)
    dtype = TYPES[kind]
    if len(raw) != count * dtype.itemsize:
        refuse(
            f"{quoted(name)} of shape {list(shape)} and type {kind} must have "
            f"{count * dtype.itemsize} bytes. Got {len(raw)}."
        )
    if kind == "BOOL":  # other bytes than 0 and 1 are no booleans
        found = np.frombuffer(raw, np.uint8)
        if (found > 1).any():
            refuse(f"{quoted(name)} must hold the bytes 0 and 1, being BOOL.")
        return found.astype(np.bool_).reshape(shape)
    return np.frombuffer(raw, dtype).reshape(shape)


def _texts(name: str, count: int, raw: bytes) -> NDArray[Any]:
    found, place = np.empty(count, dtype=object), 0
    for number in range(count):
        if place + 4 > len(raw):
            refuse(f"{quoted(name)} must hold {count} texts. It ends after {number}.")
        (size,) = struct.unpack_from("<I", raw, place)
        place += 4 + size
        if place > len(raw):
            refuse(f"{quoted(name)}: text {number + 1} is longer than the bytes left.")
        try:
            found[number] = raw[place - size : place].decode()
        except UnicodeDecodeError:
            refuse(f"{quoted(name)}: text {number + 1} must be UTF-8.")
    if place != len(raw):
        refuse(f"{quoted(name)} has {len(raw) - place} bytes after its last text.")
    return found


def from_json(name: str, kind: str, shape: tuple[int, ...], data: Any) -> NDArray[Any]:
    """A tensor of JSON: flat, or nested in its shape."""
    if not isinstance(data, list):
        refuse(f"The data of {quoted(name)} must be a list. Got {quoted(data)}.")
    flat = _flat(name, data, shape)
    check = _is_text if kind == BYTES else _CHECKS.get(kind[:2], _is_whole)
    is_plain = kind[:2] == "FP" and _NUMBERS.issuperset(map(type, flat))
    for number, value in enumerate(() if is_plain else flat):
        if not check(value):
            refuse(
                f"{quoted(name)} must hold values of the type {kind}. Value "
                f"{number + 1} is {quoted(value)}."
            )
    if kind == BYTES:
        found = np.empty(len(flat), dtype=object)
        found[:] = flat
        return found.reshape(shape)
    dtype = TYPES[kind]
    if dtype.kind == "f":
        return _floats(name, flat, dtype).reshape(shape)
    try:
        return np.array(flat, dtype).reshape(shape)
    except OverflowError:
        refuse(f"{quoted(name)} holds whole numbers that {kind} cannot hold.")


def _floats(name: str, flat: list[Any], dtype: Any) -> NDArray[Any]:
    try:
        # Not by way of another type: numpy gives the lock away while it converts, and
        # waits for the computing thread to have it back.
        with np.errstate(over="ignore"):
            found = np.array(flat, dtype)  # None becomes NaN
    except OverflowError:
        refuse(f"{quoted(name)} holds numbers that {dtype} cannot hold.")
    if np.isinf(found).any():
        at = int(np.isinf(found).argmax())
        refuse(f"{quoted(name)} must hold finite numbers. Value {at + 1} is not.")
    return found


def _flat(name: str, data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """All values; a list that is nested must have exactly the shape."""
    count = math.prod(shape)
    if list not in map(type, data):
        if len(data) != count:
            refuse(
                f"The data of {quoted(name)} must be {count} values for the shape "
                f"{list(shape)}. Got {len(data)}."
            )
        return data
    found: list[Any] = [data]
    for size in shape:
        if not all(isinstance(part, list) and len(part) == size for part in found):
            refuse(
                f"The data of {quoted(name)} must be nested as its shape {list(shape)}."
            )
        found = [value for part in found for value in part]
    return found


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return value is None or (
        isinstance(value, int | float) and not isinstance(value, bool)
    )


_NUMBERS = frozenset({int, float})
_CHECKS = {"BO": _is_bool, "FP": _is_number}


def to_bytes(values: NDArray[Any], kind: str) -> bytes:
    """The bytes of a tensor."""
    if kind == BYTES:
        texts = [str(value).encode() for value in values.reshape(-1)]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    return np.ascontiguousarray(values, TYPES[kind]).tobytes()
