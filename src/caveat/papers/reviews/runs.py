"""One random split of the reviews of one category, all settings.

The labels +1 and -1 are the response, counts of words the covariates, as they are;
there is no intercept. The prediction is the sign of x'mu.

One Krylov space serves all settings with the same lambda0 / (f (1 - f)) (ledger E50),
so the rates f and 1 - f share theirs; without dropout one serves every lambda0.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caveat.data import load_reviews
from caveat.data.reviews import CATEGORIES, Reviews
from caveat.maxent.linear import Features, make_intercept
from caveat.maxent.linear.krylov import solve_shifted
from caveat.maxent.linear.paths import ratio_path
from caveat.maxent.linear.rows import ShiftedRows

Array = NDArray[np.float64]
Split = tuple[str, str, int, str]  # version, category, number, part

VERSIONS = ("full", "top5000")
TEST, VALIDATION = "test", "validation"
METHODS = {"plain": 0.0, "dropout_10": 0.1, "dropout_50": 0.5, "dropout_90": 0.9}
_SHARING = (("dropout_10", "dropout_90"), ("dropout_50",))  # f and 1 - f
TRAIN_SHARE = 0.75
FIT_SHARE = 0.8  # of the training reviews, to choose by the rest of them
_TOLERANCE = 1e-4  # relative residual; signs of predictions need no more


@dataclass(frozen=True)
class ReviewRecord:
    """Errors of one split at one prior precision."""

    version: str
    category: str
    repeat: int  # number of the random split
    part: str  # on test reviews, or on training reviews that were held out
    prior_precision: float  # lambda0
    plain: float  # share of these reviews with the wrong sign, without dropout
    dropout_10: float  # and with a drop rate of 0.1
    dropout_50: float
    dropout_90: float
    n_train: int
    n_test: int
    n_features: int
    seconds: float  # CPU time of the split, shared out over its precisions

    @property
    def split(self) -> Split:
        """What was split, and how."""
        return self.version, self.category, self.repeat, self.part


def run_split(split: Split, precisions: Sequence[float]) -> list[ReviewRecord]:
    """Fit all settings on one split, and test them or choose among them.

    For a choice they are fitted on a part of the training reviews and see the rest;
    test reviews have no part in it.
    """
    version, category, repeat, part = split
    start = time.process_time()
    reviews = all_reviews(version, category)
    seed = [CATEGORIES.index(category), repeat]
    order = np.random.default_rng(seed).permutation(len(reviews.y))
    train, test = np.split(order, [round(TRAIN_SHARE * len(order))])
    if part == VALIDATION:
        train, test = np.split(train, [round(FIT_SHARE * len(train))])
    errors = split_errors(_taken(reviews, train), _taken(reviews, test), precisions)
    seconds = (time.process_time() - start) / len(precisions)
    return [
        ReviewRecord(
            *split,
            precision,
            n_train=len(train),
            n_test=len(test),
            n_features=int(reviews.X.shape[1]),
            seconds=seconds,
            **dict(zip(METHODS, row, strict=True)),
        )
        for precision, row in zip(precisions, errors.tolist(), strict=True)
    ]


def split_errors(train: Reviews, test: Reviews, precisions: Sequence[float]) -> Array:
    """Share of wrong signs, shape (precisions, methods); labels are +1 and -1."""
    present = np.flatnonzero(train.X.getnnz(0))  # other columns have the weight 0
    features, y = Features(train.X[:, present]), train.y.astype(np.float64)
    new = test.X[:, present]
    praised = (test.y > 0)[:, None]
    scores = dict.fromkeys(METHODS, np.empty((len(test.y), 0)))
    scores["plain"] = new @ _plain(features, y, np.array(precisions))
    for precision in precisions:
        for names in _SHARING:
            found = new @ _dropout(features, y, precision, names)
            for name, column in zip(names, found.T, strict=True):
                scores[name] = np.column_stack([scores[name], column])
    wrong = [((scores[name] > 0.0) != praised).mean(0) for name in METHODS]
    return np.column_stack(wrong)


def _plain(features: Features, y: Array, precisions: Array) -> Array:
    """mu without dropout, a column per precision."""
    rows = ShiftedRows(features.matrix)
    residuals = solve_shifted(rows, y, 1.0 / precisions, tol=_TOLERANCE)
    return rows.transposed_times(residuals) / precisions


def _dropout(
    features: Features, y: Array, precision: float, names: Sequence[str]
) -> Array:
    """mu with dropout, a column per rate; all have the same f (1 - f)."""
    rates = np.array([METHODS[name] for name in names])
    return ratio_path(
        features,
        y,
        rates,
        prior_ratio=precision / float(rates[0] * (1.0 - rates[0])),
        intercept=make_intercept(False, "zero"),
        tol=_TOLERANCE,
    )


@lru_cache(maxsize=1)
def all_reviews(version: str, category: str) -> Reviews:
    """The reviews that are split.

    Of the version with 5000 features these are the ones called unlabelled, since the
    paper's numbers of observations are theirs plus one.
    """
    data = load_reviews(category, version)
    chosen = data.train if data.test is None else data.test
    return Reviews(chosen.X.astype(np.float64), chosen.y)


def _taken(reviews: Reviews, rows: NDArray[Any]) -> Reviews:
    return Reviews(reviews.X[rows], reviews.y[rows])
