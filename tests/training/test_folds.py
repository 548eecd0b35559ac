"""Folds: every row on one side, and their number by size."""

import numpy as np
import pytest

from caveat.errors import ParameterError
from caveat.training.folds import contiguous_folds, folds_by_size, last_fifth


class TestFolds:
    @pytest.mark.parametrize("n_rows", [5, 7, 60, 1500, 1501, 6999, 7000])
    def test_every_row_is_on_one_side_of_a_fold(self, n_rows):
        for train, valid in folds_by_size(n_rows):
            assert sorted([*train, *valid]) == list(range(n_rows))

    @pytest.mark.parametrize("count", [2, 3, 5])
    def test_folds_hold_out_every_row_once(self, count):
        folds = contiguous_folds(17, count)
        assert sorted(np.concatenate([f.valid for f in folds])) == list(range(17))
        sizes = [len(fold.valid) for fold in folds]
        assert max(sizes) - min(sizes) <= 1

    @pytest.mark.parametrize(
        ("n_rows", "count"), [(100, 5), (1500, 5), (1501, 3), (6999, 3), (7000, 1)]
    )
    def test_their_number_goes_by_size(self, n_rows, count):
        assert len(folds_by_size(n_rows)) == count

    def test_the_last_fifth(self):
        [fold] = last_fifth(11)
        assert fold.valid.tolist() == [9, 10]

    @pytest.mark.parametrize("folds", [folds_by_size, last_fifth])
    def test_too_few_rows_are_refused(self, folds):
        with pytest.raises(ParameterError, match=r"5 rows are needed.*Got 4"):
            folds(4)
