"""The jobs of Table 1, resumed runs, and the stored results."""

import io
import math
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from caveat.cli import main
from caveat.data import load_uci, uci
from caveat.data.uci_sets import UCI_SETS
from caveat.errors import StoppedError
from caveat.papers.records import read_records
from caveat.papers.runner import complete, reproduce
from caveat.papers.table1 import comparison
from caveat.papers.table1 import experiment as table1
from caveat.papers.table1.comparison import rows
from caveat.papers.table1.experiment import Table1
from caveat.papers.table1.jobs import Record
from caveat.papers.table1.protocols import VARIANTS
from caveat.papers.table1.running import run
from tests.papers.table1.records import a_record

RESULTS = Path(__file__).parents[3] / "docs" / "results"


def stored_in(experiment):
    return read_records(experiment.path("csv"), Record)


def test_all_that_the_file_holds_is_kept_and_sorted(tmp_path, real_data):
    own = Table1(tmp_path, protocol="paper", sets="yacht", splits=2)
    yacht, boston = a_record(dataset="yacht"), a_record()
    assert own.ordered({r.key: [r] for r in (yacht, boston)}) == [boston, yacht]


def test_a_job_is_one_split_and_done_with_all_its_variants(tmp_path, real_data):
    own = Table1(tmp_path, protocol="paper", sets="yacht, boston", splits=3)
    yacht = [job for job in own.jobs([]) if job.dataset == "yacht"]
    assert [job.splits for job in yacht] == [(0,), (1,), (2,)]
    both = ("published precision", "searched precision")
    assert all(job.variants == both for job in yacht)
    records = [a_record(dataset="yacht", split=1, variant=v) for v in both]
    records += [a_record(dataset="yacht", split=0, variant=both[0])]
    known = {own.key(record) for record in records}
    assert [own.is_done(job, known) for job in yacht] == [False, True, False]
    assert own.jobs(records) == own.jobs([])  # so that "k of n" counts them all
    assert [j.dataset for j in own.jobs([])] == ["boston"] * 6 + ["yacht"] * 3


def test_splits_of_pbp_are_one_job_for_each_set(tmp_path, real_data):
    own = Table1(tmp_path, protocol="pbp", sets="protein, yacht")
    assert [len(job.splits) for job in own.jobs([])] == [5, 20]
    few = Table1(tmp_path, protocol="pbp", sets="yacht", splits=3)
    assert [job.splits for job in few.jobs([])] == [(0, 1, 2)]


@pytest.mark.parametrize("off", [0.0, 4.0])
def test_a_column_found_again_is_judged_cell_by_cell(off, tmp_path, real_data):
    """Means moved by so many combined errors hold or do not."""
    spread = {"protocol": "pbp", "variant": "1 layer", "n_draws": 0}
    moved = 5.67 + off * math.hypot(0.09, 0.005, 0.1)
    records = [
        a_record(
            dataset="concrete",
            split=k,
            rmse=moved + sign * 0.1 * math.sqrt(19),
            log_likelihood=-3.16 + sign * 0.02 * math.sqrt(19),
            **spread,
        )
        for k, sign in enumerate([1, -1] * 10)
    ]
    page = "\n".join(map(str, Table1(tmp_path, protocol="pbp").page(records)))
    told = "does not hold, for 1 of 2" if off else "holds, for 2 of 2"
    assert f"within 3 combined standard errors: {told} cells" in page
    assert f"| concrete | {off:+.1f} |" in page and "no draws" in page


@pytest.mark.parametrize("protocol", VARIANTS)
def test_every_protocol_runs_and_is_resumed(protocol, tmp_path, monkeypatch, real_data):
    own = Table1(tmp_path, True, protocol, "yacht", 1)
    page = reproduce(own, n_workers=1)
    for variant in sum(VARIANTS[protocol], ()):
        assert (f"## {variant}" in page) == (variant != "no dropout")
    assert (tmp_path / f"table1_{protocol}_quick.png").stat().st_size > 10_000
    records = stored_in(own)
    assert all(math.isfinite(r.log_likelihood) and 0 < r.rmse < 20 for r in records)

    def never(job):
        raise AssertionError(f"{job} was run again")

    monkeypatch.setattr(table1, "run", never)
    assert reproduce(own, n_workers=1) == page


def test_what_was_finished_before_an_interruption_is_kept(
    tmp_path, monkeypatch, real_data
):
    done = []

    def stop_at_the_second(job):
        if done:
            raise KeyboardInterrupt
        done.append(job)
        return run(job)

    monkeypatch.setattr(table1, "run", stop_at_the_second)
    own = Table1(tmp_path, True, "flagship", "yacht", 3)
    with pytest.raises(StoppedError, match="saved 1 of 3; run again to go on"):
        complete(own, n_workers=1)
    assert [r.split for r in stored_in(own)] == [0]
    monkeypatch.setattr(table1, "run", run)
    complete(own, n_workers=1)
    assert [r.split for r in stored_in(own)] == [0, 1, 2]


def test_two_workers_give_what_one_gives(tmp_path, real_data):
    found = []
    for n_workers in (1, 2):
        own = Table1(tmp_path / str(n_workers), True, "paper", "yacht", 3)
        complete(own, n_workers=n_workers)
        found.append(repr([replace(r, seconds=0.0) for r in stored_in(own)]))
    assert found[0].count("split=") == 6  # two variants of each
    assert found[0] == found[1]


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
    own = Table1(tmp_path / "out", True, "paper", "year")
    page = reproduce(own, n_workers=1)
    assert "| year | 1 |" in page and "not run" not in page


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
    shown = capsys.readouterr().out
    assert "yacht" in shown and str(tmp_path) in shown
    assert all(len(line) <= 80 for line in shown.splitlines()[:-1])  # but the folder
    assert "| yacht | 1 |" in (tmp_path / "table1_paper_quick.md").read_text()
    assert main(["reproduce", "table1", "--protocol", "worst"]) == 2


def stored(protocol):
    found = stored_in(Table1(RESULTS, protocol=protocol))
    if not found:
        pytest.skip(f"needs results: caveat reproduce table1 --protocol {protocol}")
    return rows(found)


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


def test_one_layer_is_no_worse_than_the_grid_of_2018_but_on_wine(real_data):
    rows_ = [row for row in stored("best") if row.variant == "1 layer"]
    assert len(rows_) == 9
    worse = {
        (row.dataset, metric)
        for row in rows_
        for metric in ("rmse", "ll")
        if worse_by(row, metric) >= 2
    }
    assert worse == {("wine", "ll")}  # docs/results/README.md says so


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


def test_variants_of_the_same_networks_took_their_time_once(tmp_path):
    own = Table1(tmp_path, protocol="paper")
    both = [a_record(variant=v) for v in ("published precision", "searched precision")]
    alone = a_record(variant="no dropout", seconds=0.5)
    assert own.cpu_seconds([*both, alone]) == 1.5
    assert own.cpu_seconds([a_record(split=k, seconds=2.0) for k in range(3)]) == 6.0
