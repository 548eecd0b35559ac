"""The report on a model file and a table."""

import json
import re

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from caveat.errors import DataError
from caveat.frames import FrameModel, as_source
from caveat.reports import tables
from caveat.reports.tables import report_table

rng = np.random.default_rng(0)
SIZE, KIND = rng.normal(size=240), rng.choice(["a", "b"], 240)
Y = SIZE + (KIND == "a") + 0.1 * rng.normal(size=240)
ROWS = {"size": SIZE, "kind": KIND, "y": Y}


def part(start, stop, **others):
    return {name: values[start:stop] for name, values in (ROWS | others).items()}


@pytest.fixture(scope="module")
def model():
    return FrameModel.fit(part(0, 120), target="y", preset="fast", units={"y": "kg"})


def data_of(made):
    block = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', made.html)
    return json.loads(block[1])


def test_a_table_and_its_file_give_the_same_page(model, tmp_path):
    held = part(120, 240)
    path = tmp_path / "held.csv"
    lines = [
        f"{a!r},{b},{c!r}"
        for a, b, c in zip(
            held["size"].tolist(), held["kind"], held["y"].tolist(), strict=True
        )
    ]
    path.write_text("size,kind,y\n" + "\n".join(lines) + "\n")
    memory, file = report_table(model, held), report_table(model, path)
    assert memory.verdict == file.verdict
    assert data_of(memory) == data_of(file)
    assert "kg" in file.html and "kind" in file.html and "size" in file.html
    first = data_of(file)["people"][0]
    for made, number in ((memory, 0), (file, 1)):  # as messages count rows of files
        assert f"counted from {number}." in made.html
        assert re.search(rf"<tbody><tr><td[^>]*>{first + number}</td>", made.html)


def test_parts_give_what_the_whole_gives(model, monkeypatch):
    held = part(120, 240)
    whole = report_table(model, held)
    monkeypatch.setattr(tables, "_AT_ONCE", 50)
    assert report_table(model, held).verdict == whole.verdict


def test_many_rows_get_fewer_draws_and_it_is_said(model, monkeypatch):
    monkeypatch.setattr(tables, "_KEPT", 120 * 70)
    assert "70" in report_table(model, part(120, 240)).html
    assert " draws" in report_table(model, part(120, 240), n_draws=80).html


def test_labels():
    labels = np.where(Y > 0, "yes", "no")
    own = {"y": labels}
    model = FrameModel.fit(part(0, 120, **own), target="y", classify=True)
    made = report_table(model, part(120, 240, **own))
    assert "yes" in made.html and len(made.verdict) == 3


def test_a_wrong_value_is_told_with_its_file(model, tmp_path):
    path = tmp_path / "held.csv"
    path.write_text("size,kind,y\n1,a,2\nlarge,b,3\n")
    with pytest.raises(DataError, match=r"held\.csv, row 2: column 'size'.*'large'"):
        report_table(model, path)


def test_gaps_and_dates_are_groups_of_their_own():
    days = np.datetime64("2024-01-01", "s") + np.arange(240) * np.timedelta64(1, "D")
    own = {
        "size": np.where(np.arange(240) % 3 == 0, np.nan, SIZE),
        "kind": np.where(np.arange(240) % 4 == 0, None, KIND),
        "day": days,
    }
    model = FrameModel.fit(part(0, 120, **own), target="y", preset="fast")
    rows = as_source(part(120, 240, **own)).whole()
    found = tables._columns(model, rows, model.matrix(rows))
    np.testing.assert_array_equal(found["size"], own["size"][120:])
    assert found["kind"].tolist() == own["kind"][120:].tolist()
    assert (found["day"] == days[120:]).all()
    made = report_table(model, rows)
    assert "missing" in made.html and re.search(r"2024-\d\d-\d\d", made.html)


def test_what_was_filled_in_is_said(model):
    size = np.where(np.arange(120) == 7, np.nan, SIZE[120:])
    made = report_table(model, part(120, 240) | {"size": size})
    assert "1 row: " in made.html and "its median was taken" in made.html


def test_outcomes_are_needed(model):
    held = part(120, 240)
    del held["y"]
    with pytest.raises(DataError, match="target column 'y'"):
        report_table(model, held)
