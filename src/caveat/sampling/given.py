"""Inputs as people have them, made into what a model is called with.

Tables (``DataFrame``, ``Series``) and lists of numbers become arrays; one mapping of
arguments (a dict, a ``BatchEncoding``) becomes keywords; labels that a loader gives
beside its inputs are left out if one says so. Everything else passes through.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset

from caveat.errors import InputTypeError
from caveat.sampling.sources import signature_of

_PLAIN = (Tensor, np.ndarray)
_LABELS = ("labels", "label", "y", "target", "targets")  # keys of a batch's labels


def given_inputs(
    model: nn.Module,
    inputs: tuple[Any, ...],
    kwinputs: Mapping[str, Any],
    *,
    has_labels: bool = False,
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Positional and keyword arguments, as arrays and tensors where they can be.

    Parameters
    ----------
    model : nn.Module
        Whose arguments they are: a dict is one argument if it is not known by the
        names of several.
    inputs, kwinputs
        As they were given.
    has_labels : bool
        Whether the batches, or rows, of an iterable end in labels.

    Returns
    -------
    inputs, kwinputs
    """
    alone = inputs[0] if len(inputs) == 1 and not kwinputs else None
    if has_labels:
        return (_without_labels(alone),), kwinputs
    if all(isinstance(value, _PLAIN) for value in inputs) and not kwinputs:
        return inputs, kwinputs  # nearly all calls
    whole = _takes_whole_numbers(model)
    if isinstance(alone, Mapping) and _are_arguments(model, alone):
        return (), {k: _rows_of_numbers(value) for k, value in alone.items()}
    if isinstance(alone, list | tuple) and not hasattr(alone, "_fields"):
        return (_real(_array_of_numbers(alone), whole),), kwinputs
    found = tuple(_array_of_table(value, whole) for value in inputs)
    return found, {k: _array_of_table(value, whole) for k, value in kwinputs.items()}


def _takes_whole_numbers(model: nn.Module) -> bool:
    """Whether whole numbers may be meant as such: they look something up."""
    return any(isinstance(m, nn.Embedding | nn.EmbeddingBag) for m in model.modules())


def _real(value: Any, whole: bool) -> Any:
    """Whole numbers of a table or a list as real ones, unless they are looked up."""
    is_whole = isinstance(value, np.ndarray) and value.dtype.kind in "iub"
    return value.astype(np.float64) if is_whole and not whole else value


def _are_arguments(model: nn.Module, given: Mapping[Any, Any]) -> bool:
    """Whether a mapping holds keywords, or is itself what the model takes."""
    if not isinstance(given, dict):
        return True  # a BatchEncoding, which no model takes whole
    signature = signature_of(model)
    known = () if signature is None else signature.parameters
    return bool(given) and all(name in known for name in given)


def _rows_of_numbers(value: Any) -> Any:
    """A list of rows, each a list of numbers, as an array; else what it was."""
    is_rows = isinstance(value, list) and value and isinstance(value[0], list)
    return _array_of_numbers(value) if is_rows else _array_of_table(value, True)


def _array_of_numbers(value: Any) -> Any:
    """Numbers in lists, all of one length, as an array; else what it was."""
    first = value
    while isinstance(first, list | tuple) and first:
        first = first[0]
    if isinstance(first, bool) or not isinstance(first, int | float | np.number):
        return value
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # of several lengths
        return value
    return array if array.dtype.kind in "iuf" else value


def _array_of_table(value: Any, whole: bool) -> Any:
    """The numbers of a data frame, or of a column of one; else what it was.

    A column of real numbers is a table of one column, (rows, 1).
    """
    if type(value).__module__.startswith("scipy.sparse"):
        raise InputTypeError(
            f"A network takes tensors and arrays. Got a {type(value).__name__} of "
            f"shape {value.shape}; pass x.toarray(), some rows at a time if there are "
            f"many."
        )
    if isinstance(value, _PLAIN):
        return value
    if hasattr(value, "to_numpy"):
        array = np.array(value.to_numpy())  # a copy: some frames lend what is read-only
    elif hasattr(value, "__array__"):  # a table of pyarrow, an array of jax
        array = np.array(value)
    else:
        return value
    if array.dtype.kind == "O" and not _others(value):
        array = _real_ones(array)  # bools beside numbers, or columns that may miss some
    if array.dtype.kind not in "iufb":
        raise InputTypeError(
            f"A {type(value).__name__} must hold numbers only. Got "
            f"{_others(value) or 'missing values'}. "
            f"Encode what is no number, and fill or drop what is missing, before."
        )
    array = _real(array, whole)
    return array[:, None] if array.ndim == 1 and array.dtype.kind == "f" else array


def _real_ones(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Objects as the real numbers that they are; as they were if some are missing."""
    try:
        return array.astype(np.float64)
    except TypeError:
        return array


def _others(table: Any) -> str:
    """Which columns are no numbers; empty if all are."""
    kinds: Any = getattr(table, "dtypes", None)
    if not hasattr(kinds, "items"):
        return f"dtype {getattr(table, 'dtype', 'object')}"
    bad = [f"{name!r} ({kind})" for name, kind in kinds.items() if _is_other(kind)]
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    return ", ".join(bad[:5]) + more


def _is_other(kind: Any) -> bool:
    return getattr(kind, "kind", "O") not in "iufb"


def _without_labels(batches: Any) -> Any:
    if isinstance(batches, IterableDataset):
        return _UnlabelledStream(batches)
    if isinstance(batches, Dataset):
        return _UnlabelledRows(batches)
    if isinstance(batches, Mapping | Tensor | np.ndarray) or not isinstance(
        batches, Iterable
    ):
        raise InputTypeError(
            f"has_labels=True is for a loader, a data set or a list of batches (x, y), "
            f"as the one argument. Got {type(batches).__name__}; leave its labels out."
        )
    if isinstance(batches, list | tuple):
        return [_inputs_of(batch) for batch in batches]
    return _Unlabelled(batches)


def _inputs_of(batch: Any) -> Any:
    """A batch, or a row, without its labels: the last, or those of that name."""
    if isinstance(batch, Mapping):
        return {k: v for k, v in batch.items() if k not in _LABELS}
    if not isinstance(batch, list | tuple) or len(batch) < 2:
        raise InputTypeError(
            f"has_labels=True needs batches such as (x, y), which end in labels. "
            f"Got {type(batch).__name__}; leave it out."
        )
    *inputs, _ = batch
    return inputs[0] if len(inputs) == 1 else tuple(inputs)


class _Unlabelled:
    """A loader whose batches have lost their labels; read again if it can be."""

    def __init__(self, loader: Iterable[Any]) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        return map(_inputs_of, self._loader)


class _UnlabelledStream(IterableDataset[Any]):
    def __init__(self, rows: IterableDataset[Any]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        return map(_inputs_of, self._rows)


class _UnlabelledRows(Dataset[Any]):
    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: int) -> Any:
        return _inputs_of(self._rows[number])
