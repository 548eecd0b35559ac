"""Tables with columns as they come: numbers, categories, booleans, times, gaps."""

from caveat._optional import require

require("pyarrow", extra="files")  # before the parts import it

from caveat.frames.answers import Asking  # noqa: E402
from caveat.frames.encoding import Encoder  # noqa: E402
from caveat.frames.fitting import fit_file  # noqa: E402
from caveat.frames.model import FrameModel  # noqa: E402
from caveat.frames.predicting import Predicted, predict_file  # noqa: E402
from caveat.frames.reading import (  # noqa: E402
    Dialect,
    TableSource,
    as_source,
    open_table,
)
from caveat.frames.schema import Column, Dropped, Schema, Target  # noqa: E402
from caveat.frames.writing import write_table  # noqa: E402

__all__ = [
    "Asking",
    "Column",
    "Dialect",
    "Dropped",
    "Encoder",
    "FrameModel",
    "Predicted",
    "Schema",
    "TableSource",
    "Target",
    "as_source",
    "fit_file",
    "open_table",
    "predict_file",
    "write_table",
]
