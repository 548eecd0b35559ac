"""Which kind of served model a fitted thing makes."""

import os
from typing import Any

from caveat.errors import InputTypeError
from caveat.sampling import MCDropout
from caveat.serve.array_models import MatrixModel
from caveat.serve.models import ServedModel
from caveat.serve.table_model import TableModel


def served(model: Any) -> ServedModel:
    """A model as a server sees it.

    Parameters
    ----------
    model : FrameModel, estimator or NetworkModel
        Fitted.

    Returns
    -------
    ServedModel
    """
    if isinstance(model, ServedModel):
        return model
    if isinstance(model, MCDropout):
        raise InputTypeError(
            "An MCDropout does not say what it takes. Give caveat.serve.NetworkModel("
            "mc, example), with precision=… for a regression."
        )
    if hasattr(model, "schema") and hasattr(model, "predictive_of"):
        return TableModel(model)
    if hasattr(model, "predictive") and hasattr(model, "n_features_in_"):
        return MatrixModel(model)
    if isinstance(model, str | os.PathLike):
        raise InputTypeError(
            f"A model to serve must be a model, not the name of a file: give "
            f"caveat.load({os.fspath(model)!r}), or run caveat serve with the file."
        )
    raise InputTypeError(
        f"A model to serve must be a FrameModel, a fitted estimator of Caveat, or a "
        f"caveat.serve.NetworkModel. Got {type(model).__name__}."
    )
