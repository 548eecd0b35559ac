"""Where batches come from: the arguments of a call, a list, a loader, a data set."""

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from torch import Generator, Tensor, nn

from caveat.errors import InputTypeError, ShapeError
from caveat.sampling.arguments import argument_batch, call_batch, can_run
from caveat.sampling.copying import original
from caveat.sampling.inputs import Batch, method_signature

_ROWS_AT_ONCE = 256  # of a data set, if nothing is said

_WHICH = """A {kind} of {n} may be {n} batches, or one argument of {name}, which takes
either. Say which:
  batches:       iter(batches), in place of the {kind}
  one argument:  by its name, {argument}=[...]"""

_LABELS = """The batches hold {n} things each, but {name}.forward needs only {required}
({needed}); the next would be passed as {optional!r}. If it is a label, pass only the
inputs:  (x for x, *_ in loader)
If it is an input, say so by name:  ({{{names}}} for {items} in loader)"""

_CANNOT = """{name}.forward cannot take ({given}): {error}. If the batches hold labels,
too, say has_labels=True, or pass only the inputs: (x for x, y in loader). If a batch is
one argument that is a list, pass it by name: ({{'{first}': x}} for x in loader)."""


@dataclass(frozen=True)
class Batches:
    """Batches, one after the other.

    Attributes
    ----------
    make : callable
        Begins to read them.
    passes_once : bool
        They cannot be read again, or not at no cost: a loader, a generator.
    several : bool
        There may be more than one.
    """

    make: Callable[[], Iterator[Batch]]
    passes_once: bool = False
    several: bool = True

    def __iter__(self) -> Iterator[Batch]:
        """From the first on; an error if there is none."""
        empty = True
        for batch in self.make():
            empty = False
            yield batch
            del batch  # not kept while the next is made
        if empty:
            raise ShapeError(
                "The iterable of batches is empty: there is nothing to predict."
            )


def source_of(
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    axis: int,
    batch_size: int | None,
    model: nn.Module,
) -> Batches:
    """The batches of a call: its arguments, split, or those of an iterable argument.

    A single positional argument that can be iterated (``DataLoader``, list, generator),
    but is neither a tensor nor an array, nor has named parts (a mapping, a named tuple,
    a graph), gives one batch an item. Rows of a data set are put together to batches.
    """
    items = args[0] if len(args) == 1 and not kwargs else None
    if isinstance(items, Tensor):
        items = None  # the usual case, of every call
    if items is not None and _is_data_set(items):
        loader = partial(_loader, items, batch_size or _ROWS_AT_ONCE)
        return Batches(partial(_streamed, loader, axis, None, model), passes_once=True)
    if isinstance(items, list | tuple) and not hasattr(items, "_fields"):
        if not _is_argument(model, items, axis):
            make = partial(_streamed, lambda: items, axis, batch_size, model)
            return Batches(make)
    elif _is_iterable_of_batches(items):
        make = partial(_streamed, lambda: items, axis, batch_size, model)
        return Batches(make, passes_once=True)
    batch = call_batch(model, args, kwargs, axis=axis)
    check_call(model, batch)
    several = batch_size is not None and batch_size < batch.rows
    return Batches(partial(batch.split, batch_size), several=several)


def check_call(model: nn.Module, batch: Batch) -> None:
    """A clear word if the model cannot be called with these arguments."""
    forward, form = original(model).forward, batch.structure.key
    known = _forms.setdefault(getattr(forward, "__func__", model), set())
    signature = None if form in known else signature_of(model)
    if signature is None:
        return
    args, kwargs = batch.arguments
    try:
        signature.bind(*args, **kwargs)
        known.add(form)
    except TypeError as error:
        given = ", ".join([type(a).__name__ for a in args] + [f"{k}=" for k in kwargs])
        name, first = type(model).__name__, next(iter(signature.parameters), "x")
        message = _CANNOT.format(name=name, given=given, error=error, first=first)
        raise InputTypeError(message) from None


# How functions were called before, which they can be.
_forms: "WeakKeyDictionary[Any, set[Any]]" = WeakKeyDictionary()


def _streamed(
    begin: Callable[[], Any], axis: int, batch_size: int | None, model: nn.Module
) -> Iterator[Batch]:
    rows = 0
    for item in begin():
        batch = _batch_of_item(item, axis, model)
        check_call(model, batch)
        batch = argument_batch(model, batch)
        del item
        for piece in batch.split(batch_size):
            yield piece.placed(rows)
            rows += piece.rows
            del piece
        del batch


def _batch_of_item(item: Any, axis: int, model: nn.Module) -> Batch:
    if isinstance(item, Mapping):
        keywords = {str(name): value for name, value in item.items()}
        return Batch.of((), keywords, axis=axis, model=model)
    args = tuple(item) if isinstance(item, list | tuple) else (item,)
    _check_meant(model, len(args))
    return Batch.of(args, {}, axis=axis, model=model)


def _check_meant(model: nn.Module, count: int) -> None:
    """Labels must not be passed for what a model can do without."""
    signature = signature_of(model)
    if signature is None or count < 2:
        return
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [p for p in signature.parameters.values() if p.kind in kinds]
    needed = [p.name for p in taken if p.default is inspect.Parameter.empty]
    if not len(needed) < count <= len(taken):
        return
    names = [p.name for p in taken[:count]]
    raise InputTypeError(
        _LABELS.format(
            n=count,
            name=type(model).__name__,
            required=len(needed),
            needed=", ".join(needed) or "nothing",
            optional=taken[len(needed)].name,
            names=", ".join(f"{name!r}: {name}" for name in names),
            items=", ".join(names),
        )
    )


def signature_of(model: nn.Module) -> inspect.Signature | None:
    """What the forward of a model takes; None if that cannot be told."""
    return method_signature(original(model).forward)


# ------------------------------------------------------------ kinds of iterables


def _is_iterable_of_batches(value: Any) -> bool:
    if isinstance(value, Tensor | np.ndarray | Mapping | str | bytes | tuple):
        return False
    if hasattr(value, "to_numpy"):  # a table: its columns are no batches
        return False
    if callable(getattr(value, "keys", None)) and hasattr(value, "__getitem__"):
        return False  # one thing with named parts: a graph, a TensorDict
    return hasattr(value, "__iter__")


def _is_data_set(value: Any) -> bool:
    """Whether iterating would give rows, not batches."""
    kind = type(value)
    if any(base.__module__.split(".")[0] == "datasets" for base in kind.__mro__):
        return True  # of Hugging Face, which are no kin of torch's
    from torch.utils.data import Dataset

    if isinstance(value, Dataset):
        return True
    access = hasattr(kind, "__getitem__") and hasattr(kind, "__len__")
    return access and not hasattr(kind, "__iter__")


def _loader(data: Any, batch_size: int) -> Any:
    from torch.utils.data import DataLoader

    # A generator of its own: a loader draws from torch's global one even in order.
    return DataLoader(data, batch_size, generator=Generator())


def _is_argument(model: nn.Module, items: Sequence[Any], axis: int) -> bool:
    """Whether a list is an input of the model itself, not batches for it.

    The annotation of ``forward`` may say so. Otherwise the model is asked: most can
    run one of the two and not the other. A model that can run both is not guessed at.
    """
    said = _annotated(model)
    if said is not None or not items:
        return bool(said)
    whole = partial(Batch.of, (items,), {}, axis=axis, model=model)
    if not can_run(model, whole):
        return False
    if not can_run(model, partial(_batch_of_item, items[0], axis, model)):
        return True
    signature = signature_of(model)
    argument = next(iter(signature.parameters), "x") if signature else "x"
    kind, name = type(items).__name__, type(model).__name__
    found = {"kind": kind, "n": len(items), "name": name, "argument": argument}
    raise InputTypeError(_WHICH.format(**found))


def _annotated(model: nn.Module) -> bool | None:
    """Whether the first argument of ``forward`` is said to be a list; None: unsaid."""
    try:
        hints = typing.get_type_hints(original(model).forward)
    except Exception:  # names that are not there at run time
        return None
    signature = signature_of(model)
    first = next(iter(signature.parameters), None) if signature else None
    hint = hints.get(first) if first is not None else None
    if hint is Tensor:
        return False
    kind = typing.get_origin(hint) or hint
    if isinstance(kind, type) and issubclass(kind, Sequence) and kind is not str:
        return True
    return None
