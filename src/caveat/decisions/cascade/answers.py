"""What a cascade answers, and which stage did."""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from caveat.errors import InputTypeError
from caveat.predictive import (
    ClassificationPredictive,
    Predictive,
    RegressionPredictive,
)

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


class StageAnswer(NamedTuple):
    """The answers of one model: row numbers, and the predictive of these rows."""

    rows: Rows
    predictive: Predictive


@final
@dataclass(frozen=True, eq=False)
class CascadeAnswer:
    """The answers of all stages to a batch of rows.

    Attributes
    ----------
    stage : array of int, shape (rows,)
        The number of the stage that answered.
    parts : tuple of StageAnswer
        Of the models that ran, in order; a part may have no rows.
    n_run : tuple of int
        On how many rows each stage ran.
    for_person : array of int
        Rows that wait for the person.
    """

    stage: Rows
    parts: tuple[StageAnswer, ...]
    n_run: tuple[int, ...]
    for_person: Rows

    def __len__(self) -> int:
        return len(self.stage)

    @property
    def label(self) -> Rows:
        """The most probable class of each row; -1 where the person is to say."""
        found = np.full(len(self), -1, dtype=np.int64)
        for rows, predictive in self.parts:
            if not isinstance(predictive, ClassificationPredictive):
                raise InputTypeError("label is for classifications; ask for mean.")
            found[rows] = predictive.label.numpy(force=True)
        return found

    @property
    def mean(self) -> Array:
        """The mean of each row, (rows, *event); NaN where the person is to say."""
        found: Array | None = None
        for rows, predictive in self.parts:
            if not isinstance(predictive, RegressionPredictive):
                raise InputTypeError("mean is for regressions; ask for label.")
            if found is None:
                found = np.full((len(self), *predictive.mean.shape[1:]), np.nan)
            found[rows] = predictive.mean.numpy(force=True)
        assert found is not None  # the first stage is a model
        return found
