"""Columns that say the target are named, and no others."""

import warnings

import numpy as np
import pytest

from caveat.errors import CaveatWarning
from caveat.estimators import BayesianDropoutClassifier, BayesianDropoutRegression
from caveat.frames import FrameModel

RNG = np.random.default_rng(0)
A = RNG.normal(size=60)
Y = A + 0.1 * RNG.normal(size=60)
LABEL = np.where(Y > 0.0, "yes", "no")


def fit(y, **columns):
    classify = y.dtype.kind == "U"
    kind = BayesianDropoutClassifier if classify else BayesianDropoutRegression
    table = {"a": A, **columns, "y": y}
    return FrameModel.fit(table, target="y", classify=classify, estimator=kind(0.1))


@pytest.mark.parametrize(
    ("y", "leak"),
    [
        (Y, Y),
        (Y, 3.2 - 1.8 * Y),  # in other units
        (LABEL, LABEL),
        (LABEL, np.where(LABEL == "yes", "j", "n")),
        (LABEL, LABEL == "no"),
    ],
)
def test_a_column_that_says_the_target(y, leak):
    with pytest.warns(CaveatWarning, match=r"'leak' says the target 'y'.*--drop"):
        fit(y, leak=leak)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize(
    ("y", "column"),
    [
        (Y, Y + 1e-3 * RNG.normal(size=60)),
        (LABEL, np.where(np.arange(60) == 3, "other", LABEL)),
        (LABEL, RNG.choice(["j", "n"], 60)),
        (LABEL, Y),
        (np.array([f"case {n}" for n in range(60)]), Y),  # all labels differ
    ],
)
def test_others_do_not(y, column):
    with warnings.catch_warnings():
        warnings.simplefilter("error", CaveatWarning)
        fit(y, column=column)
