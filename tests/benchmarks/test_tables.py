"""The benchmark of tables: sets, splits, resuming, ranks."""

import json

import numpy as np
import pytest

from benchmarks import bench_tables, table_models
from benchmarks.table_sets import SETS, chosen


def test_halves_share_no_set_and_both_have_both_kinds():
    names = [s.name for s in SETS]
    assert len(set(names)) == len(names) >= 20
    for half in bench_tables.HALVES:
        kinds = [s.is_regression for s in SETS if s.half == half]
        assert 5 <= sum(kinds) < len(kinds)


def test_splits_leave_no_row_out_and_none_twice():
    [table] = chosen(["iris"], None)
    x, y, x_new, y_new = table.split(1)
    assert len(x) == len(y) == 120 and len(x_new) == len(y_new) == 30
    both = np.concatenate([x, x_new])
    assert np.array_equal(np.sort(both, 0), np.sort(table.make()[0], 0))
    with pytest.raises(ValueError, match="no set"):
        chosen(["nothing"], None)


@pytest.fixture
def few_models(monkeypatch):
    """The simple ones; ours is a line, too."""
    own = {"constant", "linear", "HistGB"}
    for name in ("REGRESSION", "CLASSIFICATION"):
        models = {k: v for k, v in getattr(table_models, name).items() if k in own}
        models[table_models.OURS] = models["linear"]
        models["Gaussian process"] = models["constant"]
        monkeypatch.setattr(table_models, name, models)


def test_a_run_is_stored_and_goes_on(few_models, tmp_path, capsys):
    arguments = ["--quick", "--output", str(tmp_path)]
    assert bench_tables.main(arguments) == 0
    stored = json.loads((tmp_path / bench_tables.ROWS).read_text())
    assert len(stored) == 10
    assert (tmp_path / "tables.png").stat().st_size > 5000
    assert "state crime" in (tmp_path / "tables.md").read_text()
    capsys.readouterr()
    assert bench_tables.main(arguments) == 0
    assert "seconds 0" not in capsys.readouterr().out  # nothing was run again


def test_scores_of_a_gaussian():
    y = np.array([0.0, 1.0])
    found = table_models._gaussian(y, np.zeros(2), 1.0)
    assert found["log_likelihood"] == pytest.approx(-0.25 - 0.5 * np.log(2 * np.pi))
    assert found["coverage"] == 1.0 and found["width"] == pytest.approx(
        3.2897, abs=1e-3
    )
