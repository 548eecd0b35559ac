"""Columns: robust units, bounds, codes and pieces."""

import numpy as np

from caveat.estimators.tables.columns import BEND, WIDEST, Columns
from caveat.estimators.tables.views import RowsOfViews, Views


def rows(n_rows=200, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(5, 2, n_rows), rng.integers(0, 4, n_rows)])


def test_units_are_those_of_the_middle_half():
    x = np.random.default_rng(0).normal(5, 2, size=(4000, 1))
    z = Columns.of(x).plain(x)
    assert abs(np.median(z)) < 1e-12
    assert np.quantile(z, 0.75) - np.quantile(z, 0.25) == np.float64(1.349).round(3)


def test_a_mistyped_value_changes_nothing_for_the_others():
    x = rows()
    wrong = x.copy()
    wrong[0, 0] *= 1000
    before, after = Columns.of(x).bounded(x), Columns.of(wrong).bounded(wrong)
    assert np.abs(before[1:] - after[1:]).max() < 0.1
    assert np.abs(after).max() <= BEND


def test_new_rows_are_clipped_to_somewhat_more_than_the_range():
    x = rows()
    found = Columns.of(x).plain(np.array([[1e9, 1e9], [-1e9, -1e9]]))
    assert np.abs(found).max() <= WIDEST
    assert np.abs(found).max() < 10.0


def test_whole_numbers_of_few_values_get_a_column_each():
    x = rows()
    columns = Columns.of(x)
    assert columns.levels[0].size == 0 and columns.levels[1].tolist() == [0, 1, 2, 3]
    codes = columns.encoded(x)[:, 2:]
    assert (codes.sum(1) == 1).all()
    unseen = columns.encoded(np.array([[5.0, 9.0]]))[:, 2:]
    assert (unseen == 0).all()


def test_pieces_add_up_to_the_place_among_the_quantiles():
    x = rows()
    columns = Columns.of(x)
    pieces = columns.pieces(x)[:, 6:]
    order = np.argsort(x[:, 0])
    assert ((pieces >= 0) & (pieces <= 1)).all()
    assert (np.diff(pieces.sum(1)[order]) >= -1e-12).all()


def test_constant_and_doubled_columns_are_harmless():
    x = np.column_stack([np.ones(50), np.zeros(50), np.arange(50), np.arange(50)])
    found = Columns.of(x).pieces(x)
    assert np.isfinite(found).all() and (found[:, :2] == 0).all()


def test_views_are_made_once_and_can_be_cut():
    x = rows()
    views = Views(Columns.of(x), x)
    assert views["plain"] is views["plain"] and len(views) == len(x)
    some = RowsOfViews(views, np.array([3, 5]))
    assert len(some) == 2 and np.array_equal(some["plain"], views["plain"][[3, 5]])


def test_no_piece_reaches_to_a_mistyped_value():
    x = np.random.default_rng(0).lognormal(4.3, 0.4, size=(400, 1))
    x[:3] *= 1000
    columns = Columns.of(x)
    assert columns.knots[0].max() < 8 * np.quantile(x, 0.9)
    assert (columns.pieces(1000 * x[3:])[:, -1] == 1.0).all()  # all beyond it alike
