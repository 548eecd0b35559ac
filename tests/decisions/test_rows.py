"""Rows of arrays, tensors, sparse matrices and data frames."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from caveat.decisions.rows import n_rows, take
from caveat.errors import InputTypeError

TABLE = np.arange(12.0).reshape(4, 3)
ROWS = np.array([2, 0])


@pytest.mark.parametrize(
    "kind",
    [np.asarray, torch.tensor, sparse.csr_array, pd.DataFrame],
    ids=["array", "tensor", "sparse", "frame"],
)
def test_rows_keep_their_kind(kind):
    table = kind(TABLE)
    found = take(table, ROWS)
    assert type(found) is type(table)
    assert n_rows("X", table) == 4
    plain = found.toarray() if sparse.issparse(found) else np.asarray(found)
    np.testing.assert_array_equal(plain, TABLE[ROWS])


def test_lists_are_refused_with_a_word():
    with pytest.raises(InputTypeError, match=r"X must be an array.*Got list"):
        n_rows("X", [[1.0]])
