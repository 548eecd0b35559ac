"""Scoring: the right rows, whoever computes them, and errors that lose nothing."""

import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caveat
from caveat.cli import main
from caveat.errors import DataError, ParameterError, StoppedError
from caveat.frames import Asking, predict_file
from caveat.scoring import UnitsFailedError, working
from tests.scoring.data import (
    N_ROWS,
    N_UNITS,
    checksums,
    quietly,
    rows_in,
    write_tables,
)


def test_the_answers_are_those_of_predict(model, tables, plain, tmp_path):
    """Row groups and all formats give the numbers of whole files, in their order."""
    frame = caveat.load(model)
    for name in ("a.parquet", "b.csv", "year=2024/e.jsonl"):
        predict_file(frame, tables / name, tmp_path / "out.parquet")
        whole = pq.read_table(tmp_path / "out.parquet")
        parts = sorted(plain.glob(f"{name}.*"))
        assert len(parts) == (4 if name == "a.parquet" else 1)
        assert pa.concat_tables(pq.ParquetFile(p).read() for p in parts).equals(whole)


def test_the_manifest_lists_all(plain, tables):
    found = json.loads((plain / "_manifest.json").read_text())
    assert found["rows"] == N_ROWS == rows_in(plain)
    assert len(found["units"]) == N_UNITS
    for unit in found["units"]:
        assert (tables / unit["source"]).exists()
        if unit["rows"]:
            assert checksums(plain)[unit["name"]] == unit["sha256"]
            assert (
                pq.ParquetFile(plain / unit["name"]).metadata.num_rows == unit["rows"]
            )
    assert [u["source"] for u in found["units"] if not u["rows"]] == ["none.csv"]


def test_threads_change_no_byte(model, tables, plain, tmp_path):
    import torch

    torch.set_num_threads(2)
    try:
        quietly(model, tables, tmp_path / "out")
    finally:
        torch.set_num_threads(1)
    assert checksums(tmp_path / "out") == checksums(plain)


def test_a_single_file_and_settings(model, tables, tmp_path):
    asking = Asking.of(level=0.5, tolerance=0.3, seed=3)
    for form in ("csv", "jsonl", "arrow"):
        done = quietly(
            model,
            tables / "b.csv",
            tmp_path / form,
            asking=asking,
            keep=True,
            output_format=form,
        )
        assert done.n_rows == 200 and done.n_units == 1
    (own,) = (tmp_path / "csv").glob("b.csv.*.csv")
    head = own.read_text().splitlines()[0]
    assert head.startswith('"name","size"') and head.endswith('"y_epistemic"')


def test_resuming_a_finished_run_does_nothing(model, tables, plain, tmp_path):
    folder = tmp_path / "out"
    shutil.copytree(plain, folder)
    times = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    times[folder / "_manifest.json"] = (folder / "_manifest.json").stat().st_mtime_ns
    done = quietly(model, tables, folder, resume=True)
    assert (done.n_new, done.n_rows) == (0, N_ROWS)
    assert all(path.stat().st_mtime_ns == then for path, then in times.items())


def test_a_lost_or_damaged_unit_is_made_again(model, tables, plain, tmp_path):
    folder = tmp_path / "out"
    shutil.copytree(plain, folder)
    first, second, *_ = sorted(folder.glob("a.parquet.*"))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1] + b"?")
    (folder / f".{first.name}.0123abcd.part").write_text("cut sh")
    (folder / "a.parquet.00000.0123456789abcdef.parquet").write_text("of no unit")
    assert quietly(model, tables, folder, resume=True).n_new == 2
    assert checksums(folder) == checksums(plain)


@pytest.mark.parametrize("cut", [1, 40])
def test_a_journal_that_was_cut_short_is_read(model, tables, plain, tmp_path, cut):
    folder = tmp_path / "out"
    shutil.copytree(plain, folder)
    (folder / "_manifest.json").unlink()
    journal = folder / "_units.jsonl"
    journal.write_bytes(journal.read_bytes()[:-cut])
    assert quietly(model, tables, folder, resume=True).n_new == (0 if cut == 1 else 1)
    assert checksums(folder) == checksums(plain)


# What goes wrong


@pytest.fixture
def own_tables(tmp_path):
    return write_tables(tmp_path / "in")


def test_broken_files_are_named_and_all_else_is_done(
    model, own_tables, plain, tmp_path, capsys
):
    """A footer that is none, a row group that is damaged, a column and a value."""
    whole = {path: path.read_bytes() for path in own_tables.rglob("*.*")}
    broken = own_tables / "a.parquet"
    broken.write_bytes(whole[broken][:-9])
    text = (own_tables / "b.csv").read_text()
    (own_tables / "b.csv").write_text(text.replace("size", "sise", 1))
    feathers = own_tables / "year=2024" / "d.feather"
    feathers.write_bytes(b"ARROW1 and no more")
    lines = (own_tables / "year=2024" / "e.jsonl").read_text().splitlines()
    lines[6] = lines[6].replace('"size":', '"size":"big","other":')
    (own_tables / "year=2024" / "e.jsonl").write_text("\n".join(lines))

    command = ["score", str(model), str(own_tables), str(tmp_path / "out")]
    assert main([*command, "--workers", "1"]) == 1
    told = capsys.readouterr().err
    failed = [x for x in told.splitlines() if x.startswith("caveat: failed: ")]
    assert len(failed) == 4
    for name, why in (
        ("a.parquet", "cannot be read"),
        ("b.csv", "must have the column 'size'"),
        ("d.feather", "cannot be read"),
        ("e.jsonl", "row 7: column 'size'"),
    ):
        assert any(name in line and why in line for line in failed), told
    assert "2 units are saved" in told and "--resume" in told
    assert not (tmp_path / "out" / "_manifest.json").exists()

    for path, content in whole.items():
        path.write_bytes(content)
    assert main([*command, "--workers", "1", "--resume"]) == 0
    assert "620 rows in 9 units, 7 of them new" in capsys.readouterr().err
    assert checksums(tmp_path / "out") == checksums(plain)


def test_a_row_is_counted_from_the_start_of_its_file(model, tmp_path):
    table = pq.read_table(write_tables(tmp_path / "in") / "a.parquet")
    kinds = table.column("kind").to_pylist()
    kinds[150] = "never seen"
    at = table.schema.get_field_index("kind")
    pq.write_table(
        table.set_column(at, "kind", pa.array(kinds)),
        tmp_path / "in" / "a.parquet",
        row_group_size=80,
    )
    with pytest.raises(UnitsFailedError, match=r"a\.parquet, row 151: column 'kind'"):
        quietly(model, tmp_path / "in" / "a.parquet", tmp_path / "out")


def test_a_full_disk_stops_early_and_loses_nothing(
    model, tables, plain, tmp_path, monkeypatch
):
    real, calls = working.predict_file, []

    def full_at_the_fourth(model, table, goal, **settings):
        calls.append(goal)
        if len(calls) == 4:
            with caveat._drafts.said_of(goal):
                raise OSError(28, "No space left on device")
        return real(model, table, goal, **settings)

    monkeypatch.setattr(working, "predict_file", full_at_the_fourth)
    with pytest.raises(UnitsFailedError, match="No space left") as caught:
        quietly(model, tables, tmp_path / "out")
    assert "3 units are saved" in str(caught.value) and len(calls) == 4
    monkeypatch.undo()
    assert quietly(model, tables, tmp_path / "out", resume=True).n_new == N_UNITS - 3
    assert checksums(tmp_path / "out") == checksums(plain)


def test_ctrl_c_says_how_much_is_saved(model, tables, tmp_path, monkeypatch):
    real, calls = working.predict_file, []

    def stopped_at_the_third(*given, **settings):
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*given, **settings)

    monkeypatch.setattr(working, "predict_file", stopped_at_the_third)
    with pytest.raises(StoppedError, match=r"2 of 9 units are saved in .*--resume"):
        quietly(model, tables, tmp_path / "out")
    assert not list((tmp_path / "out").glob(".*.part"))


def test_changed_input_is_scored_again_and_said(model, own_tables, tmp_path):
    folder = tmp_path / "out"
    quietly(model, own_tables, folder)
    path = own_tables / "b.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:101]) + "\n")
    done = quietly(model, own_tables, folder, resume=True)
    assert done.changed == ("b.csv",) and done.lines()[0].startswith(
        "b.csv has changed"
    )
    assert (done.n_new, done.n_rows) == (1, N_ROWS - 100)
    assert rows_in(folder) == N_ROWS - 100
    quietly(model, own_tables, tmp_path / "anew")
    assert checksums(folder) == checksums(tmp_path / "anew")


def test_a_file_that_changes_under_the_run_is_noticed(
    model, own_tables, tmp_path, monkeypatch
):
    real = working.predict_file

    def touched(model, table, goal, **settings):
        found = real(model, table, goal, **settings)
        if table.name.endswith("b.csv"):
            os.utime(own_tables / "b.csv", ns=(1, 1))
        return found

    monkeypatch.setattr(working, "predict_file", touched)
    with pytest.raises(UnitsFailedError, match=r"b\.csv has changed since the run"):
        quietly(model, own_tables, tmp_path / "out")
    assert not list((tmp_path / "out").glob("b.csv.*"))


def test_input_that_is_gone_is_refused_and_new_input_is_added(
    model, own_tables, tmp_path
):
    quietly(model, own_tables, tmp_path / "out")
    shutil.copy(own_tables / "b.csv", own_tables / "new.csv")
    assert quietly(model, own_tables, tmp_path / "out", resume=True).n_new == 1
    (own_tables / "b.csv").unlink()
    with pytest.raises(ParameterError, match=r"b\.csv, of which .* no longer"):
        quietly(model, own_tables, tmp_path / "out", resume=True)


def test_another_model_is_refused(model, tables, plain, tmp_path):
    other = tmp_path / "other.caveat"
    own = caveat.load(model)
    own.estimator.n_draws += 1
    caveat.save(own, other)
    with pytest.raises(ParameterError, match="was begun with model_sha256"):
        quietly(other, tables, plain, resume=True)
    with pytest.raises(ParameterError, match="was begun with seed 0, and this is seed"):
        quietly(model, tables, plain, resume=True, asking=Asking.of(seed=1))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"engine": "dask"}, "engine must be one of 'local', 'ray'"),
        ({"n_workers": 0}, "n_workers must be at least 1"),
        ({"output_format": "xls"}, "output_format must be one of"),
        ({"unseen": "ignore"}, "unseen must be one of"),
        ({"address": "auto"}, "address is of a Ray cluster"),
    ],
)
def test_settings_that_make_no_sense(model, tables, tmp_path, settings, told):
    with pytest.raises(ParameterError, match=told):
        quietly(model, tables, tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


def test_a_model_that_is_none_makes_no_folder(tables, tmp_path):
    (tmp_path / "m.caveat").write_bytes(np.zeros(99).tobytes())
    with pytest.raises(DataError):
        quietly(tmp_path / "m.caveat", tables, tmp_path / "out")
    assert not (tmp_path / "out").exists()
