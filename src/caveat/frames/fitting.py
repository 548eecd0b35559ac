"""From a file of rows to a fitted model."""

from typing import Any

from caveat.frames.model import FrameModel
from caveat.frames.reading import Dialect, open_table


def fit_file(
    path: Any, *, target: str, dialect: Dialect | None = None, **settings: Any
) -> FrameModel:
    """Fit a model to the rows of a file.

    Parameters
    ----------
    path : str or Path
        CSV, Parquet, Arrow or JSON lines; ``"-"`` is standard input.
    target : str
        The column to predict.
    dialect : Dialect, optional
        Where the name of the file does not say all.
    **settings
        As for :meth:`FrameModel.fit`.

    Returns
    -------
    FrameModel
    """
    with open_table(path, dialect) as source:
        return FrameModel.fit(source, target=target, **settings)
