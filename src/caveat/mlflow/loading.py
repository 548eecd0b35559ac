"""What MLflow loads: a model file, answered as by the command line.

MLflow imports this module and calls ``_load_pyfunc`` with the path of the file, which
is read by ``caveat.load``: nothing in it is executed.
"""

from dataclasses import dataclass
from typing import Any, final

from caveat.errors import InputTypeError, ParameterError
from caveat.files import load
from caveat.frames import Asking, FrameModel

DEFAULTS: dict[str, Any] = {
    "n_draws": None,
    "seed": 0,
    "level": 0.9,
    "tolerance": None,
}


@final
@dataclass(frozen=True)
class TableAnswers:
    """A model of a table in the manner of MLflow.

    Attributes
    ----------
    model : FrameModel
    """

    model: FrameModel

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """The answers for all rows.

        Parameters
        ----------
        model_input : table
            Of pandas, polars or pyarrow, or a dict of columns.
        params : dict, optional
            ``n_draws``, ``seed``, ``level`` and ``tolerance``.

        Returns
        -------
        pandas.DataFrame
            The columns of ``caveat predict``, with the index of the input.
        """
        asking = _asking(params or {})
        found = self.model.answers(self.model.matrix(model_input), asking).to_pandas()
        index = getattr(model_input, "index", None)
        return found if index is None else found.set_axis(index)


def _asking(params: dict[str, Any]) -> Asking:
    unknown = set(params) - set(DEFAULTS)
    if unknown:
        raise ParameterError(
            f"params must be among {', '.join(DEFAULTS)}. Got {sorted(unknown)}."
        )
    return Asking.of(**{**DEFAULTS, **params})


def _load_pyfunc(path: str) -> TableAnswers:
    """Called by MLflow."""
    return TableAnswers(checked(load(path)))


def checked(model: Any) -> FrameModel:
    """A model of a table; anything else is refused."""
    if not isinstance(model, FrameModel):
        raise InputTypeError(
            f"model must be a FrameModel, which knows the columns of its tables: made "
            f"by caveat fit or FrameModel.fit. Got {type(model).__name__}; for an "
            f"estimator, FrameModel.fit(table, target=..., estimator=...)."
        )
    return model
