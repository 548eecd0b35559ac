"""Objects as plain values and tensors, and the way back.

An object of a known kind is its fields; arrays go to the tensors under the names of
the fields they were met in. The way back makes objects of the kinds it is given, and
nothing else, whatever a file says.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from caveat.errors import InputTypeError, ParameterError

Stored = dict[str, Any]
Tensors = Mapping[str, Tensor]

_NUMBERS = "?bhilqBfde"  # NumPy's types that torch has too
_TEXTS = "UO"


class FileKind(NamedTuple):
    """How objects of a class are taken apart and put together.

    Attributes
    ----------
    type : type
        The class itself; subclasses are not of the kind.
    apart : callable
        From an object to the values it is made of, by name.
    together : callable
        The way back.
    """

    type: type[Any]
    apart: Callable[[Any], dict[str, Any]]
    together: Callable[[dict[str, Any]], Any]


class Codec:
    """Takes objects of some kinds apart, and puts them together.

    Parameters
    ----------
    kinds : mapping of str to FileKind
        By the name that stands in files.
    """

    def __init__(self, kinds: Mapping[str, FileKind]) -> None:
        self._kinds = kinds
        self._names = {kind.type: name for name, kind in kinds.items()}

    def name_of(self, value: Any) -> str | None:
        """The name of an object's kind; None if it has none."""
        return self._names.get(type(value))

    def apart(self, value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
        """A value as JSON has it.

        Parameters
        ----------
        value : object
            Of a known kind, or plain.
        name : str
            Where it stands, for its tensors and for errors.
        tensors : dict of str to Tensor
            Filled with its arrays.

        Returns
        -------
        object
        """
        if value is None or isinstance(value, bool | str):
            return str(value) if isinstance(value, np.str_) else value
        if isinstance(value, int | float | np.number | np.bool_):
            return _number(value)
        if isinstance(value, list | tuple) and type(value) in (list, tuple):
            each = [self.apart(v, f"{name}.{i}", tensors) for i, v in enumerate(value)]
            return each if isinstance(value, list) else {"tuple": each}
        if type(value) is dict:
            pairs = [
                [self.apart(k, name, tensors), self.apart(v, f"{name}.{k}", tensors)]
                for k, v in value.items()
            ]
            return {"pairs": pairs}
        if isinstance(value, np.ndarray):
            return self._array(value, name, tensors)
        if isinstance(value, Tensor):
            return {"tensor": _put(value, name, tensors)}
        if sp.issparse(value) and value.format == "csr":
            parts = {p: getattr(value, p) for p in ("data", "indices", "indptr")}
            own = {p: self.apart(v, f"{name}.{p}", tensors) for p, v in parts.items()}
            is_array = isinstance(value, sp.sparray)
            return {"csr": own, "shape": list(value.shape), "is_array": is_array}
        return self._object(value, name, tensors)

    def together(self, stored: Any, tensors: Tensors) -> Any:
        """The way back from :meth:`apart`.

        Parameters
        ----------
        stored : object
            As JSON has it.
        tensors : mapping of str to Tensor
            Its arrays.

        Returns
        -------
        object
            What does not fit is some exception: the caller says which file it was.
        """
        if isinstance(stored, list):
            return [self.together(part, tensors) for part in stored]
        if not isinstance(stored, dict):
            return stored
        made = _MAKERS.get(frozenset(stored))
        if made is None:
            raise ParameterError(f"{str(stored)[:80]} is not a value of a known kind")
        return made(self, stored, tensors)

    # ------------------------------------------------------------ private

    def _object(self, value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
        kind = self.name_of(value)
        if kind is None:
            raise InputTypeError(
                f"{name} must be made of numbers, texts, arrays and caveat's own kinds "
                f"to be saved. Got {type(value).__name__}."
            )
        own = self._kinds[kind].apart(value)
        fields = {n: self.apart(v, f"{name}.{n}", tensors) for n, v in own.items()}
        return {"kind": kind, "fields": fields}

    def _array(
        self, value: NDArray[Any], name: str, tensors: dict[str, Tensor]
    ) -> dict[str, Any]:
        if value.dtype.char in _NUMBERS:
            # BLAS rounds by the order of memory: it must come back as it was.
            turned = value.flags.f_contiguous and not value.flags.c_contiguous
            straight = np.array(value.T if turned else value, order="C")
            native = straight.astype(straight.dtype.newbyteorder("="))
            key = _put(torch.from_numpy(native), name, tensors)
            return {"array": key, "transposed": bool(turned)}
        if value.dtype.kind not in _TEXTS + "iu":
            raise InputTypeError(
                f"{name} must hold numbers or texts to be saved. Got {value.dtype}."
            )
        each = [self.apart(v, name, tensors) for v in value.ravel().tolist()]
        return {"values": each, "dtype": value.dtype.str, "shape": list(value.shape)}

    def _float(self, stored: Stored, tensors: Tensors) -> float:
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[stored["float"]]

    def _tuple(self, stored: Stored, tensors: Tensors) -> tuple[Any, ...]:
        return tuple(self.together(part, tensors) for part in stored["tuple"])

    def _tensor(self, stored: Stored, tensors: Tensors) -> Tensor:
        return tensors[stored["tensor"]]

    def _numbers(self, stored: Stored, tensors: Tensors) -> NDArray[Any]:
        found = tensors[stored["array"]].numpy()
        return found.T if stored["transposed"] else found

    def _known(self, stored: Stored, tensors: Tensors) -> Any:
        own = {n: self.together(v, tensors) for n, v in stored["fields"].items()}
        return self._kinds[stored["kind"]].together(own)

    def _texts(self, stored: Stored, tensors: Tensors) -> NDArray[Any]:
        values = [self.together(v, tensors) for v in stored["values"]]
        dtype, shape = np.dtype(stored["dtype"]), tuple(map(int, stored["shape"]))
        longest = max((len(v) for v in values if isinstance(v, str)), default=0)
        if dtype.kind not in _TEXTS + "iu" or math.prod(shape) != len(values):
            raise ParameterError(f"an array of {dtype} and shape {shape} does not fit")
        if dtype.kind == "U" and dtype.itemsize > 4 * max(longest, 1):
            raise ParameterError(f"{dtype} is longer than the texts it is of")
        found = np.empty(len(values), dtype=object)
        found[:] = values
        return found.astype(dtype).reshape(shape)

    def _dict(self, stored: Stored, tensors: Tensors) -> dict[Any, Any]:
        pairs = stored["pairs"]
        found = {self.together(k, tensors): self.together(v, tensors) for k, v in pairs}
        if len(found) != len(pairs):
            raise ParameterError("a key stands twice in one mapping")
        return found

    def _csr(self, stored: Stored, tensors: Tensors) -> Any:
        own, shape = stored["csr"], tuple(map(int, stored["shape"]))
        names = ("data", "indices", "indptr")
        parts = tuple(self.together(own[name], tensors) for name in names)
        made = (sp.csr_array if stored["is_array"] else sp.csr_matrix)(
            parts, shape=shape
        )
        made.check_format(full_check=True)
        return made


_MAKERS: dict[frozenset[str], Callable[[Codec, Stored, Tensors], Any]] = {
    frozenset({"float"}): Codec._float,
    frozenset({"tuple"}): Codec._tuple,
    frozenset({"pairs"}): Codec._dict,
    frozenset({"tensor"}): Codec._tensor,
    frozenset({"array", "transposed"}): Codec._numbers,
    frozenset({"values", "dtype", "shape"}): Codec._texts,
    frozenset({"csr", "shape", "is_array"}): Codec._csr,
    frozenset({"kind", "fields"}): Codec._known,
}


def _number(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and not math.isfinite(plain):
        return {"float": str(plain)}
    return plain


def _put(value: Tensor, name: str, tensors: dict[str, Tensor]) -> str:
    key = name if name not in tensors else f"{name}+{len(tensors)}"
    tensors[key] = value
    return key
