"""log_model and save_model: a model file in MLflow, with its report."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlflow
from mlflow.models import ModelSignature
from mlflow.types.schema import AnyType, ColSpec, ParamSchema, ParamSpec
from mlflow.types.schema import DataType as Kind
from mlflow.types.schema import Schema as Columns

from caveat._version import __version__
from caveat.errors import ParameterError
from caveat.files import save
from caveat.frames import FrameModel
from caveat.mlflow.loading import DEFAULTS, checked
from caveat.reports import report

LOADER = "caveat.mlflow.loading"
FILE, REPORT = "model.caveat", "report.html"
_KINDS = {
    "n_draws": Kind.long,
    "seed": Kind.long,
    "level": Kind.double,
    "tolerance": Kind.double,
}
_OURS = ("loader_module", "data_path", "python_model", "signature", "artifacts")


def log_model(
    model: Any, name: str = "model", *, held_out: Any = None, **options: Any
) -> Any:
    """Log a model of a table, with its report, to the run that is active.

    Parameters
    ----------
    model : FrameModel
        Fitted; kept as the file that :func:`caveat.save` writes.
    name : str, default "model"
        Of the logged model.
    held_out : table, optional
        Rows with their target that trained nothing: the report on them is logged as
        ``report.html``.
    **options
        Of ``mlflow.pyfunc.log_model``, such as ``registered_model_name`` or
        ``pip_requirements``.

    Returns
    -------
    mlflow.models.model.ModelInfo
        ``mlflow.pyfunc.load_model(info.model_uri)`` loads it in any process. Its
        ``predict`` takes ``params``: n_draws, seed, level and tolerance.
    """
    model = checked(model)
    made = None if held_out is None else _report(model, held_out)
    with tempfile.TemporaryDirectory() as folder:
        found = mlflow.pyfunc.log_model(
            name=name, **_settings(model, Path(folder), options)
        )
    if made is not None:
        mlflow.log_text(made.html, REPORT)
    return found


def save_model(model: Any, path: Any, **options: Any) -> None:
    """Write a model of a table to a folder, as MLflow has them.

    Parameters
    ----------
    model : FrameModel
        Fitted.
    path : str or Path
        Of the folder, which must not exist.
    **options
        Of ``mlflow.pyfunc.save_model``.
    """
    with tempfile.TemporaryDirectory() as folder:
        own = _settings(checked(model), Path(folder), options)
        mlflow.pyfunc.save_model(path=str(path), **own)


def _settings(
    model: FrameModel, folder: Path, options: Mapping[str, Any]
) -> dict[str, Any]:
    """What MLflow is told; the file is written on the way."""
    taken = [name for name in _OURS if name in options]
    if taken:
        raise ParameterError(f"{', '.join(taken)} is settled here. Leave it out.")
    save(model, folder / FILE)
    return {
        "loader_module": LOADER,
        "data_path": str(folder / FILE),
        "signature": _signature(model),
        "pip_requirements": [f"caveat[mlflow]=={__version__}"],
        **options,
    }


def _signature(model: FrameModel) -> ModelSignature:
    """Columns by name, of any type: what they may hold, the model file says."""
    needed = model.schema.needed
    # MLflow takes no whole numbers where it was told of real ones; we do.
    anything = AnyType()  # type: ignore[no-untyped-call]
    inputs = Columns([ColSpec(anything, name, required=False) for name in needed])
    outputs = Columns([ColSpec(_kind(f), f.name) for f in model.answer_schema])
    params = [ParamSpec(name, _KINDS[name], default) for name, default in _PARAMS]
    return ModelSignature(inputs, outputs, ParamSchema(params))


_PARAMS = tuple(DEFAULTS.items())


def _kind(field: Any) -> Kind:
    kinds = {"double": Kind.double, "bool": Kind.boolean, "int64": Kind.long}
    return kinds.get(str(field.type), Kind.string)


def _report(model: FrameModel, held_out: Any) -> Any:
    target = model.schema.target
    about = {"target": target.name, **({"unit": target.unit} if target.unit else {})}
    names = model.classes if model.is_classifier else None
    y = model.targets(held_out)
    return report(model.predictive(held_out), y, about=about, classes=names)
