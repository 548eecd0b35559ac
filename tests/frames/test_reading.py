"""Files are read in batches, in memory that does not grow with them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from caveat.frames import open_table


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="Linux tells")
@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_a_file_is_not_mapped_into_memory(tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    table = pa.table({"a": list(range(20_000))})
    if ending == "parquet":
        pq.write_table(table, path)
    else:
        feather.write_feather(table, path, compression="uncompressed")
    with open_table(path) as source:
        next(iter(source.batches()))
        assert str(path) not in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("text", ["a,b", "a,b\n", "a,b\r\n\r\n", '"a\n1",b\n'])
def test_arrow_is_not_asked_for_a_header_alone(tmp_path, monkeypatch, text):
    """It gives up while its thread still reads, which aborts a process that ends."""

    def asked(*args: object, **kwargs: object) -> None:
        raise AssertionError("Arrow was asked")

    monkeypatch.setattr("caveat.frames.csv.arrow_csv.open_csv", asked)
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with open_table(path) as source:
        assert list(source.batches()) == []
    path.write_text(text + "\n1,2\n")
    with open_table(path) as source, pytest.raises(AssertionError, match="asked"):
        list(source.batches())
