"""Table 1: its machinery on few epochs; its stored results against the promises."""

import io
import math
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from caveat.cli import main
from caveat.data import load_uci, load_uci_per_split, uci
from caveat.data.uci_sets import UCI_SETS
from caveat.errors import ParameterError
from caveat.papers.table1 import comparison, reproduce_table1, runner
from caveat.papers.table1.comparison import Value, rows, verdict
from caveat.papers.table1.jobs import Job
from caveat.papers.table1.protocols import VARIANTS, our_specs
from caveat.papers.table1.records import Record, RecordFile
from caveat.papers.table1.runner import run_protocol
from caveat.papers.table1.scoring import run

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def a_record(**changes):
    values = {
        "protocol": "paper",
        "variant": "published precision",
        "dataset": "boston",
        "split": 0,
        "rmse": 3.0,
        "log_likelihood": -2.5,
        "rmse_weight_averaging": 3.1,
        "scale": 0.16,
        "drop_rate": 0.05,
        "input_drop_rate": 0.05,
        "hidden_layers": 1,
        "epochs": 400,
        "n_networks": 1,
        "n_draws": 10_000,
        "seconds": 1.0,
    }
    return Record(**(values | changes))


def test_records_survive_the_file(tmp_path):
    path = tmp_path / "deep" / "r.csv"
    first, second = a_record(), a_record(split=1, rmse=2.5)
    RecordFile(path).add([second])
    file = RecordFile(path)
    file.add([first])
    assert RecordFile(path).sorted() == [first, second]
    assert first.key in RecordFile(path)
    assert not list(path.parent.glob("*.part"))


@pytest.mark.parametrize("protocol", VARIANTS)
def test_every_protocol_runs_and_is_resumed(protocol, tmp_path, monkeypatch, real_data):
    settings = {"sets": ["yacht"], "n_splits": 1, "quick": True, "n_workers": 1}
    page = reproduce_table1(protocol, tmp_path, **settings)
    for variant in sum(VARIANTS[protocol], ()):
        assert (f"## {variant}" in page) == (variant != "no dropout")
    assert (tmp_path / f"table1_{protocol}_quick.png").stat().st_size > 10_000
    records = RecordFile(tmp_path / f"table1_{protocol}_quick.csv").sorted()
    assert all(math.isfinite(r.log_likelihood) and 0 < r.rmse < 20 for r in records)

    def never(job):
        raise AssertionError(f"{job} was run again")

    monkeypatch.setattr(runner, "run", never)
    assert reproduce_table1(protocol, tmp_path, **settings) == page


def test_what_was_finished_before_an_interruption_is_kept(
    tmp_path, monkeypatch, real_data
):
    done = []

    def stop_at_the_second(job):
        if done:
            raise KeyboardInterrupt
        done.append(job)
        return run(job)

    monkeypatch.setattr(runner, "run", stop_at_the_second)
    monkeypatch.setattr(runner, "_FEW_SPLITS", 1)
    path = tmp_path / "r.csv"
    settings = {"sets": ["yacht"], "n_splits": 3, "quick": True, "n_workers": 1}
    with pytest.raises(KeyboardInterrupt):
        run_protocol("flagship", path, **settings)
    assert [r.split for r in RecordFile(path).sorted()] == [0]
    monkeypatch.setattr(runner, "run", run)
    assert [r.split for r in run_protocol("flagship", path, **settings)] == [0, 1, 2]


def test_two_workers_give_what_one_gives(tmp_path, real_data):
    settings = {"sets": ["yacht"], "n_splits": 6, "quick": True}
    one = run_protocol("grid", tmp_path / "1.csv", n_workers=1, **settings)
    two = run_protocol("grid", tmp_path / "2.csv", n_workers=2, **settings)
    assert len(one) == 6
    for a, b in zip(one, two, strict=True):
        assert replace(a, seconds=0.0) == replace(b, seconds=0.0)


def test_year_has_its_row(tmp_path, monkeypatch, real_data):
    """On a small file of the same shape; the real one is downloaded by users."""
    tiny = replace(UCI_SETS[-1], n_rows=60, n_test=6)
    monkeypatch.setattr(uci, "UCI_SETS", (*UCI_SETS[:-1], tiny))
    folder = tmp_path / "data"
    (folder / "uci" / tiny.folder).mkdir(parents=True)
    for table in Path(real_data, "uci").glob("*.csv"):
        shutil.copy(table, folder / "uci")
    (folder / "uci" / tiny.folder / "yearpredictionmsd.zip").write_bytes(_year(60))
    monkeypatch.setenv("CAVEAT_DATA", str(folder))
    settings = {"sets": ["year"], "quick": True, "n_workers": 1}
    page = reproduce_table1("paper", tmp_path / "out", **settings)
    assert "| year | 1 |" in page and "not run" not in page
    with pytest.raises(ParameterError, match="--protocol paper"):
        run_protocol("grid", tmp_path / "g.csv", **settings)


def _year(n_rows):
    rng = np.random.default_rng(0)
    table = np.column_stack(
        [rng.integers(1922, 2011, n_rows), rng.normal(size=(n_rows, 90))]
    )
    text = "\n".join(",".join(f"{v:.5g}" for v in row) for row in table)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("YearPredictionMSD.txt", text)
    return packed.getvalue()


def test_command_line(tmp_path, capsys, real_data):
    arguments = "reproduce table1 --quick --sets yacht --splits 1 --workers 1".split()
    assert main([*arguments, "--output", str(tmp_path)]) == 0
    assert "| yacht | 1 |" in capsys.readouterr().out
    assert main(["reproduce", "table1", "--protocol", "worst"]) == 2


def test_verdicts():
    ours, better, near = Value(3.0, 0.1), Value(2.0, 0.1), Value(3.1, 0.1)
    assert verdict("rmse", ours, better) == "lose"
    assert verdict("ll", ours, better) == "win"
    assert verdict("rmse", ours, near) == verdict("ll", near, ours) == "tie"


def test_paired_differences_are_by_split(real_data):
    theirs = [
        r
        for r in load_uci_per_split()
        if r.dataset == "boston" and r.variant == "original_1x"
    ]
    ours = [
        a_record(split=r.split, rmse=r.rmse_mc + 0.1, log_likelihood=r.ll_mc - 0.2)
        for r in theirs
    ]
    (row,) = rows(ours)
    assert row.paired["rmse"] == pytest.approx((0.1, 0.0), abs=1e-12)
    assert row.paired["ll"] == pytest.approx((-0.2, 0.0), abs=1e-12)
    assert row.published["Dropout (paper)"]["rmse"].error == pytest.approx(
        0.85 / math.sqrt(20), rel=0.03
    )


def test_candidates_do_not_look_at_the_set():
    job = Job("best", ("1 layer",), "anything", (0,))
    small = our_specs(job, 300, (50,))
    assert len(set(small)) == len(small) == 16
    assert {s.schedule.epochs for s in small} == {853, 213}
    large = our_specs(job, 10_000, (50,))
    assert {s.schedule.epochs for s in large} == {150}
    assert {s.schedule.batch_size for s in (*small, *large)} == {32, 64}


def stored(protocol):
    path = RESULTS / f"table1_{protocol}.csv"
    if not path.exists():
        pytest.skip(
            f"needs stored results: caveat reproduce table1 --protocol {protocol}"
        )
    return rows(RecordFile(path).sorted())


def worse_by(row, metric):
    """How many standard errors worse than the authors on the same splits."""
    z = comparison.paired_z(row.paired[metric])
    return z if metric == "rmse" else -z


def test_stored_results_are_complete(real_data):
    for protocol in ("paper", "best", "flagship"):
        for row in stored(protocol):
            assert row.n_splits == len(load_uci(row.dataset).splits)


def test_paper_is_reproduced(real_data):
    """Within 3 standard errors of the authors on every set, paired by split."""
    for row in stored("paper"):
        for metric in row.paired:
            z = comparison.paired_z(row.paired[metric])
            assert abs(z) < 3 or (
                row.variant == "searched precision"
                and z * (1 if metric == "ll" else -1) > 0
            ), (row.dataset, row.variant, metric, z)


def test_one_layer_is_no_worse_than_the_grid_of_2018(real_data):
    rows_ = [row for row in stored("best") if row.variant == "1 layer"]
    assert len(rows_) == 9
    for row in rows_:
        for metric in ("rmse", "ll"):
            assert worse_by(row, metric) < 2, (row.dataset, metric)


def test_two_layers_are_better_than_the_grid_of_2018_on_six_sets(real_data):
    better = [
        row.dataset
        for row in stored("best")
        if row.variant == "2 layers"
        and row.paired["rmse"].mean < 0
        and row.paired["ll"].mean > 0
    ]
    assert len(better) >= 6


def test_flagship_is_ahead_of_deep_ensembles(real_data):
    ahead = [
        row.dataset
        for row in stored("flagship")
        if row.ours["ll"].mean > row.published["Deep Ensembles"]["ll"].mean
    ]
    assert len(ahead) >= 8
