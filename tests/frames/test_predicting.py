"""Files in, files out: the same numbers in all formats, whole files or none."""

import gzip
import io
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from caveat.errors import DataError, ParameterError
from caveat.frames import Asking, Dialect, open_table, predict_file, predicting
from tests.frames.data import mixed, quick_labels, quick_model

NEW = mixed(600, seed=2)


@pytest.fixture(scope="module")
def model():
    return quick_model()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """So that a file has several of them."""
    monkeypatch.setattr(predicting, "_AT_ONCE", 256)


def written(folder, ending):
    path = folder / f"new{ending}"
    table = pa.Table.from_pandas(NEW, preserve_index=False)
    if ending == ".parquet":
        pq.write_table(table, path, row_group_size=100)
    elif ending in (".arrow", ".arrows"):
        make = pa.ipc.new_file if ending == ".arrow" else pa.ipc.new_stream
        with make(str(path), table.schema) as file:
            file.write_table(table, max_chunksize=77)
    elif ending.startswith(".jsonl"):
        rows = (json.dumps(row, default=str) for row in table.to_pylist())
        data = "\n".join(rows).replace("NaN", "null").encode()
        path.write_bytes(gzip.compress(data) if ending.endswith(".gz") else data)
    else:
        text = NEW.to_csv(index=False, sep="\t" if "tsv" in ending else ",").encode()
        path.write_bytes(gzip.compress(text) if ending.endswith(".gz") else text)
    return path


ENDINGS = [
    *(".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".arrows", ".jsonl"),
    ".jsonl.gz",
]


@pytest.mark.parametrize("ending", ENDINGS)
def test_all_formats_give_the_same_numbers(ending, model, tmp_path):
    out = tmp_path / "out.parquet"
    done = predict_file(model, written(tmp_path, ending), out)
    assert done.n_rows == 600 and done.notes == ()
    assert pq.read_table(out).equals(model.predict_table(NEW))


@pytest.mark.parametrize("ending", [e for e in ENDINGS if e != ".arrows"])
def test_all_formats_are_written(ending, model, tmp_path):
    out = tmp_path / f"out{ending}"
    predict_file(model, written(tmp_path, ".parquet"), out)
    expected = model.predict_table(NEW)
    with open_table(out) as source:
        found = source.whole()
    assert found.schema.names == expected.schema.names
    for name in found.schema.names:
        values = np.array(found[name].to_pylist(), dtype=np.float64)
        assert np.array_equal(values, expected[name].to_numpy()), name


def test_columns_are_kept(model, tmp_path):
    source, out = written(tmp_path, ".parquet"), tmp_path / "o.parquet"
    predict_file(model, source, out, keep=True)
    found, before = pq.read_table(out), pq.read_table(source)
    assert found.select(before.schema.names).equals(before)
    predict_file(model, written(tmp_path, ".csv"), tmp_path / "o.csv", keep=True)
    read = arrow_csv.read_csv(tmp_path / "o.csv", convert_options=TEXTS)
    given = arrow_csv.read_csv(tmp_path / "new.csv", convert_options=TEXTS)
    assert read.select(given.schema.names).equals(given)
    predict_file(model, written(tmp_path, ".csv"), out, keep=True)
    assert pq.read_table(out)["size"].to_pylist() == NEW["size"].tolist()
    predict_file(model, written(tmp_path, ".jsonl"), out, keep=True)
    assert pq.read_table(out)["size"].to_pylist() == NEW["size"].tolist()
    with pytest.raises(DataError, match=r"must not have the columns 'y_mean'.*--keep"):
        predict_file(model, tmp_path / "o.csv", out, keep=True)


TEXTS = arrow_csv.ConvertOptions(
    column_types={name: pa.string() for name in NEW.columns}
)


def test_labels_of_a_file(tmp_path):
    model = quick_labels()
    out = tmp_path / "o.csv"
    asking = Asking.of(n_draws=9, seed=3)
    predict_file(model, written(tmp_path, ".csv"), out, asking=asking)
    found = arrow_csv.read_csv(out)
    expected = model.predict_table(NEW, n_draws=9, seed=3)
    assert found["label_label"].to_pylist() == expected["label_label"].to_pylist()
    for name in expected.schema.names[1:]:
        assert np.array_equal(found[name].to_numpy(), expected[name].to_numpy())


def test_standard_input_and_output(model, tmp_path, monkeypatch, capsysbinary):
    data = written(tmp_path, ".csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    predict_file(model, "-", "-")
    shown = capsysbinary.readouterr().out
    predict_file(model, written(tmp_path, ".csv"), tmp_path / "o.csv")
    assert shown == (tmp_path / "o.csv").read_bytes()
    for given in ({"reads": Dialect("parquet")}, {"writes": Dialect("arrow")}):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        with pytest.raises(ParameterError, match="CSV or JSON lines"):
            predict_file(model, "-", "-", **given)


HEAD = "size,kind,zip,flag,when,whole,gap,who\n"
ROW = "0.5,a,01,true,2021-01-02T00:00,5,,x\n"
LATE = 300  # rows before a mistake: one of an earlier block


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        (HEAD, "must hold rows"),
        (HEAD.replace(",", ";"), "delimited by ';'"),
        (HEAD.replace(",", "\t"), "delimited by"),
        (HEAD.replace("zip", "zap") + ROW, "must have the column 'zip'"),
        (HEAD.replace("zip", "kind") + ROW, "'kind' stands there more than once"),
        (HEAD + ROW * LATE + "1,2\n", "row 301: expected 8 columns, and got 2"),
        (HEAD + ROW * LATE + ROW.replace("0.5", "?"), "row 301: column 'size'"),
        (HEAD + ROW * LATE + ROW.replace("01", "11"), "row 301: column 'zip'"),
        ((HEAD + ROW * LATE).encode() + b"1,\xe9,01,true\n", "row 301: expected"),
        (
            (HEAD + ROW * LATE + ROW).encode().replace(b"x\n", b"\xe9\n", 1),
            r"row 1: column 'who'.*not UTF-8",
        ),
        ((HEAD + ROW).encode("utf-16"), "UTF-16"),
        (HEAD.encode().replace(b"zip", b"z\xfcp"), "header is not UTF-8"),
        (b"\x00\x01\x02" * 400, "binary"),
        (HEAD + ROW + '1,"a,01,true\n' + ROW, "row 2: expected"),
        (HEAD + ROW * LATE + ROW.replace("0.5", "1e200"), "row 301: .* at most"),
    ],
    ids=range(17),
)
def test_a_csv_file_that_is_wrong(text, why, model, tmp_path):
    path, out = tmp_path / "f.csv", tmp_path / "o.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    out.write_text("before")
    with pytest.raises(DataError, match=rf"f\.csv(.|\n)*{why}"):
        predict_file(model, path, out)
    assert out.read_text() == "before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.csv", "o.csv"]


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("\ufeff" + HEAD + ROW, None),
        ((HEAD + ROW).replace("\n", "\r\n"), None),
        (HEAD + ROW.rstrip(), None),
        (HEAD + "\n" + ROW + "\n\n", None),
        (HEAD + ROW.replace("a,", '"a",').replace("0.5", '" 0.5 "'), None),
        ((HEAD + ROW).replace(",", ";"), Dialect(delimiter=";")),
        ((HEAD + ROW).replace(",", "\t"), Dialect(delimiter="tab")),
        ("note for all," + HEAD + "é," + ROW, None),
        ('"a\nb",' + HEAD + '"c\nd",' + ROW, None),
        ("\r\n\n" + HEAD + ROW, None),
        ("\ufeff\n" + HEAD + ROW, None),
    ],
    ids=range(11),
)
def test_a_csv_file_that_is_only_odd(text, dialect, model, tmp_path):
    path, out = tmp_path / "f.csv", tmp_path / "o.parquet"
    path.write_text(text, newline="")
    predict_file(model, path, out, reads=dialect)
    plain = tmp_path / "plain.csv"
    plain.write_text(HEAD + ROW)
    predict_file(model, plain, tmp_path / "p.parquet")
    assert pq.read_table(out).equals(pq.read_table(tmp_path / "p.parquet"))


def test_other_encodings_begin_with_their_header(tmp_path, model):
    (tmp_path / "f.csv").write_bytes(("\n" + HEAD + ROW).encode("utf-16"))
    with pytest.raises(DataError, match=r"f\.csv must begin with its header"):
        predict_file(
            model,
            tmp_path / "f.csv",
            tmp_path / "o.csv",
            reads=Dialect(None, None, "utf-16"),
        )


def test_other_encodings(tmp_path):
    frame = mixed()
    frame["kind"] = np.where(frame["kind"] == "a", "é", "b")
    frame.to_csv(tmp_path / "t.csv", encoding="latin-1", index=False)
    own = quick_model(frame)
    reads = Dialect(encoding="latin-1")
    predict_file(own, tmp_path / "t.csv", tmp_path / "o.parquet", reads=reads)
    assert pq.read_table(tmp_path / "o.parquet").equals(own.predict_table(frame))


def test_a_type_does_not_hang_on_the_first_block(model, tmp_path):
    """All missing, or all whole, for a megabyte; then not."""
    early = "1,a,01,true,2021-01-02T00:00,5,,\n"
    late = "1.25,a,02,false,2021-01-02T00:00,6,0.75,y\n"
    path, out = tmp_path / "f.csv", tmp_path / "o.parquet"
    path.write_text(HEAD + early * 70_000 + late)
    assert path.stat().st_size > 2**21
    with open_table(path) as source:
        first, *_, last = source.batches(["size", "gap", "zip"])
    assert first.schema == last.schema
    last_only = tmp_path / "l.csv"
    last_only.write_text(HEAD + late)
    predict_file(model, last_only, out)
    tail = tmp_path / "t.csv"
    tail.write_text(HEAD + early * 700 + late)
    predict_file(model, tail, tmp_path / "o2.parquet")
    whole = pq.read_table(tmp_path / "o2.parquet")
    assert whole.slice(700).equals(pq.read_table(out))


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("f.jsonl", b'{"size": 1}\n{"size"', "row 2: not JSON"),
        ("f.jsonl", b"[1]\n", "row 1: expected a JSON object"),
        ("f.jsonl", b'{"size": [1], "kind": "a"}\n', "row 1: column 'size'.*a list"),
        ("f.jsonl", b'{"size": 1}\n', "must have the columns"),
        ("f.jsonl", b"", "must hold rows"),
        ("f.parquet", b"PAR1xxxxPAR1", "cannot be read"),
        ("f.parquet", b"", "cannot be read"),
        ("f.arrow", b"junkjunkjunk", "cannot be read"),
        ("f.csv.gz", gzip.compress(HEAD.encode(), mtime=0)[:-6], "cannot be read"),
        ("f.csv.gz", b"size,kind\n", "cannot be read"),
    ],
    ids=range(10),
)
def test_other_files_that_are_wrong(name, data, why, model, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=rf"{name}(.|\n)*{why}"):
        predict_file(model, tmp_path / name, tmp_path / "o.csv")
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_only_texts_are_packed(model, tmp_path):
    with pytest.raises(ParameterError, match=r"must not end in \.gz"):
        predict_file(model, tmp_path / "f.csv", tmp_path / "o.parquet.gz")


def test_places_that_cannot_be_written(model, tmp_path):
    source = written(tmp_path, ".csv")
    with pytest.raises(ParameterError, match="make it first"):
        predict_file(model, source, tmp_path / "no" / "o.csv")
    with pytest.raises(ParameterError, match="is a folder"):
        predict_file(model, source, tmp_path, writes=Dialect("csv"))
    with pytest.raises(ParameterError, match="must end in one of"):
        predict_file(model, source, tmp_path / "o.xlsx")
    with pytest.raises(DataError, match=r"none\.csv must be a file"):
        predict_file(model, tmp_path / "none.csv", tmp_path / "o.csv")
    with pytest.raises(DataError, match="It is a folder"):
        predict_file(model, tmp_path, tmp_path / "o.csv", reads=Dialect("csv"))
    with pytest.raises(ParameterError, match="format must be one of"):
        predict_file(model, source, tmp_path / "o.csv", writes=Dialect("xml"))


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is of Linux")
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow"])
def test_a_full_disk(kind, model, tmp_path):
    with pytest.raises(DataError, match=r"/dev/full could not be written.*No space"):
        predict_file(
            model, written(tmp_path, ".csv"), "/dev/full", writes=Dialect(kind)
        )


def test_a_file_does_not_take_the_place_of_its_input(model, tmp_path):
    path = written(tmp_path, ".csv")
    before = path.read_bytes()
    with pytest.raises(ParameterError, match="is read and would be lost"):
        predict_file(model, path, path)
    assert path.read_bytes() == before


def test_lines_that_end_in_a_return_alone(model, tmp_path):
    text = NEW[:20].to_csv(index=False)
    for name, ending in (("n.csv", "\n"), ("r.csv", "\r"), ("rn.csv", "\r\n")):
        (tmp_path / name).write_bytes(text.replace("\n", ending).encode())
        predict_file(model, tmp_path / name, tmp_path / f"{name}.arrow")
    found = [pa.ipc.open_file(tmp_path / f"{n}.csv.arrow") for n in ("n", "r", "rn")]
    assert found[0].read_all() == found[1].read_all() == found[2].read_all()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (gzip.compress(b"size\n1\n", mtime=0), r"packed by gzip.*\.gz"),
        (b"PAR1....", "Parquet; pass --format parquet"),
        (b"ARROW1..", "Arrow; pass --format arrow"),
        (b"PK\x03\x04..", "zip archive"),
    ],
)
def test_other_formats_under_the_name_of_csv(data, why, model, tmp_path):
    (tmp_path / "f.csv").write_bytes(data)
    with pytest.raises(DataError, match=rf"f\.csv must be CSV\. It .*{why}"):
        predict_file(model, tmp_path / "f.csv", tmp_path / "o.csv")


def test_kept_columns_that_are_nested(model, tmp_path):
    table = pa.Table.from_pandas(NEW[:3], preserve_index=False)
    table = table.append_column("more", pa.array([{"p": [1, None]}] * 3))
    pq.write_table(table, tmp_path / "n.parquet")
    with pytest.raises(ParameterError, match=r"CSV.*cannot hold.*'more'.*--keep"):
        predict_file(model, tmp_path / "n.parquet", tmp_path / "o.csv", keep=True)
    predict_file(model, tmp_path / "n.parquet", tmp_path / "o.jsonl", keep=True)
    first = json.loads((tmp_path / "o.jsonl").read_text().splitlines()[0])
    assert first["more"] == {"p": [1, None]}
    assert not (tmp_path / "o.csv").exists()


def test_a_kept_column_that_comes_late(model, tmp_path, monkeypatch):
    """Of JSON lines, whose rows need not name the same columns."""
    monkeypatch.setattr("caveat.frames.jsonlines._AT_ONCE", 2)
    rows = NEW[:3].assign(when=NEW["when"][:3].astype(str)).to_dict("records")
    rows[2]["late"] = "x"
    (tmp_path / "f.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(DataError, match=r"f\.jsonl, after row 2: the column 'late'"):
        predict_file(model, tmp_path / "f.jsonl", tmp_path / "o.csv", keep=True)
    assert predict_file(model, tmp_path / "f.jsonl", tmp_path / "o.csv").n_rows == 3
