"""A bag of words without the words: sparse rows whose columns follow Zipf's law."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


@dataclass(frozen=True)
class Problem:
    """Training rows, their responses, and rows to predict."""

    x: Any
    y: NDArray[np.float64]
    x_new: Any


def make_problem(
    *, n_rows: int, n_new: int, n_features: int, per_row: int = 125
) -> Problem:
    """Rows of ``per_row`` words, some of them equal: about 80 % as many non-zeros.

    The chance of word k is proportional to 1/k; a word that comes c times counts
    1 + log c.
    """
    rng = np.random.default_rng(0)
    chances = np.cumsum(1.0 / np.arange(1, n_features + 1))
    total = n_rows + n_new
    words = np.searchsorted(chances, rng.random(total * per_row) * chances[-1])
    rows = np.repeat(np.arange(total), per_row)
    counts = sp.csr_array(
        (np.ones(len(words)), (rows, words)), shape=(total, n_features)
    )
    counts.sum_duplicates()
    counts.data = 1.0 + np.log(counts.data)
    x = counts[:n_rows]
    weights = 0.3 * rng.standard_normal(n_features)
    y = np.asarray(x @ weights) + rng.standard_normal(n_rows)
    return Problem(x, y, counts[n_rows:])
