"""``save`` and ``load``: fitted things as one file, from which nothing is run."""

import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from caveat._optional import require
from caveat.errors import CaveatError, DataError, InputTypeError, ParameterError
from caveat.files.archive import Archive, read_archive, write_archive
from caveat.files.codec import Codec
from caveat.files.kinds import ESTIMATORS, POLICIES, all_kinds
from caveat.files.networks import network_apart, network_together
from caveat.sampling import MCDropout

if TYPE_CHECKING:
    from caveat.frames import FrameModel

_MODULE, _MC, _FRAME = "network", "MCDropout", "FrameModel"
_SETTINGS = ("seed", "shared", "stratified", "batch_dim", "analytic")
# Whatever a damaged description makes Python say.
_ANYTHING = (
    *(CaveatError, ValueError, TypeError, LookupError, AttributeError, RuntimeError),
    *(ArithmeticError, AssertionError, MemoryError, RecursionError),
)


def save(model: Any, path: Any) -> None:
    """Write a fitted model to one file, without pickle.

    Parameters
    ----------
    model : object
        A fitted estimator of Caveat (networks, linear models, ``DropoutSearchCV``); a
        ``FrameModel``, with all that is attached to it; a calibration, a deferral
        policy, conformal intervals or sets; an ``MCDropout`` or a network of your own,
        of which the weights and buffers are written.
    path : str or Path
        Of the file, usually ``….caveat``; replaced only when the new one is complete.

    Notes
    -----
    A zip of ``caveat.json`` and ``tensors.safetensors``. Linear models keep the rows
    they were fitted on, which are part of their posterior; networks do not.

    Examples
    --------
    >>> import caveat, numpy as np, tempfile
    >>> from pathlib import Path
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = caveat.BayesianDropoutRegression(0.2).fit(X, X[:, 0])
    >>> path = Path(tempfile.mkdtemp()) / "m.caveat"
    >>> caveat.save(model, path)
    >>> bool((caveat.load(path).predict(X) == model.predict(X)).all())
    True
    """
    tensors: dict[str, Tensor] = {}
    if isinstance(model, MCDropout | nn.Module):
        kind, value = _network_apart(model)
    else:
        kind, value = _kind_of(model), model
        if hasattr(model, "predict"):
            check_is_fitted(model)
    content = _codec().apart(value, "model", tensors)
    write_archive(path, Archive(kind, content, tensors))


def load(path: Any, model: nn.Module | None = None) -> Any:
    """Read what :func:`save` wrote.

    Parameters
    ----------
    path : str or Path
        Of the file.
    model : nn.Module, optional
        For a network of your own: an object of its class, which is filled with the
        weights. The file names the class, and never has it imported.

    Returns
    -------
    object
        Of the kind that was saved. A file that is damaged, was tampered with, or comes
        from a newer format is a :class:`~caveat.errors.DataError`; then nothing, not
        even ``model``, has been changed.
    """
    found = read_archive(path)
    is_network = found.kind in (_MODULE, _MC)
    if model is not None and not is_network:
        raise ParameterError(
            f"model is for files of networks. {path} holds a {found.kind}, which needs "
            f"none; leave it out."
        )
    if found.kind == _FRAME:
        require("pyarrow", extra="files")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a damaged file is tried with
            value = _codec().together(found.content, found.tensors)
            _check_kind(found.kind, value)
        if is_network:
            _check_network(found.kind, value)
    except _ANYTHING as error:
        raise DataError(
            f"{Path(path)} is damaged, or was not written by caveat.save: {error}"
        ) from error
    return _network_together(found.kind, value, model) if is_network else value


def load_frame(path: Any) -> "FrameModel":
    """Read a model of a table, and nothing else.

    Parameters
    ----------
    path : str or Path
        Of a file that :func:`save` wrote for a ``FrameModel``.

    Returns
    -------
    FrameModel
    """
    require("pyarrow", extra="files")
    kind = read_archive(path).kind
    if kind != _FRAME:
        raise ParameterError(
            f"{path} must hold a model of a table, made by caveat fit or FrameModel. "
            f"It holds a {kind}."
        )
    found: FrameModel = load(path)
    return found


@cache
def _codec() -> Codec:
    return Codec(all_kinds())


def _savable() -> list[str]:
    return sorted({kind.__name__ for kind in (*POLICIES, *ESTIMATORS)} | {_FRAME})


def _kind_of(model: Any) -> str:
    kind = _codec().name_of(model)
    if kind not in _savable():
        raise InputTypeError(
            f"model must be one of {', '.join(_savable())}, an MCDropout or a "
            f"torch.nn.Module. Got {type(model).__name__}."
        )
    return str(kind)


def _check_kind(kind: str, value: Any) -> None:
    """What came must be what the file says it is, and able to say what it is."""
    if kind in (_MODULE, _MC):
        return
    if kind not in _savable() or _codec().name_of(value) != kind:
        raise ParameterError(f"it says it holds a {kind!r}, and does not")
    repr(value)


def _network_apart(model: MCDropout | nn.Module) -> tuple[str, dict[str, Any]]:
    if isinstance(model, nn.Module):
        return _MODULE, {"settings": None, "network": network_apart(model)}
    sampler = model._sampler
    settings = (
        *(model.seed, sampler.shared, sampler.stratified, model._axis, model._analytic),
    )
    own = dict(zip(_SETTINGS, settings, strict=True))
    return _MC, {"settings": own, "network": network_apart(model.model)}


def _check_network(kind: str, value: Any) -> None:
    own = value["network"]
    state, others = own["state"], own["others"]
    for name, tensor in (*state.items(), *others.items()):
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise ParameterError(f"{name!r} is not a tensor")
    if not isinstance(own["class"], str):
        raise ParameterError("the class of the network must be named")
    for name, of in own["same"]:
        if name in state or of not in state:
            raise ParameterError(f"{name!r} and {of!r} cannot be one tensor")
    for module in own["modules"]:
        if len(module) != 3 or not all(isinstance(part, str) for part in module):
            raise ParameterError("modules must be described by three texts")
    if kind == _MC:
        if list(value["settings"]) != list(_SETTINGS):
            raise ParameterError(f"settings must be {_SETTINGS}")
        MCDropout(nn.Linear(1, 1), **value["settings"])  # before the user's is touched


def _network_together(kind: str, value: Any, model: nn.Module | None) -> Any:
    filled = network_together(value["network"], model)
    return filled if kind == _MODULE else MCDropout(filled, **value["settings"])
