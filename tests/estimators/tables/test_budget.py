"""What presets may spend."""

import pytest

from caveat.estimators.tables.budget import budget_of


@pytest.mark.parametrize("n_rows", [2, 5, 9, 10, 61, 500, 6001, 20_000])
def test_every_row_is_held_out_once(n_rows):
    folds = budget_of("auto", n_rows, 5).folds(n_rows)
    held = sorted(row for fold in folds for row in fold.valid.tolist())
    assert held == list(range(n_rows))
    assert all(len(fold.train) for fold in folds)


def test_fast_tries_less_and_best_tries_more():
    fast, auto, best = (budget_of(p, 1000, 5) for p in ("fast", "auto", "best"))
    steps = [sum(r.steps for r in b.recipes) for b in (fast, auto, best)]
    assert steps[0] < steps[1] < steps[2]


def test_very_few_rows_have_no_networks_and_wide_tables_no_pieces():
    assert budget_of("auto", 20, 3).recipes == ()
    wide = budget_of("auto", 100, 400, classes=True)
    assert wide.recipes and all(r.view != "pieces" for r in wide.recipes)
