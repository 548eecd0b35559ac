"""The recipe for Spark, as the page has it, run by Spark itself.

It needs pyspark and Java, which the tests do not install: in an environment of its own,
``pip install pyspark pytest`` beside Caveat, and ``pytest -m slow`` on this file.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import caveat
from tests.frames.data import mixed, quick_labels, quick_model

PAGE = (Path(__file__).parents[2] / "docs/scoring.md").read_text()
FUNCTION = re.search(r"```python\n(def answers.*?)```", PAGE, re.DOTALL)
CALL = re.search(r"```text\n(from pyspark.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def spark():
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("caveat")
    builder = builder.config("spark.ui.enabled", "false")
    # Not a multiple of 256, so that a batch ends within a block.
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "70")
    builder = builder.config("spark.driver.host", "127.0.0.1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # else whatever is on PATH
        found = builder.getOrCreate()
        yield found
        found.stop()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Spark's own
@pytest.mark.parametrize("make", [quick_model, quick_labels])
def test_the_recipe_of_the_page(make, spark, tmp_path):
    model = make()
    caveat.save(model, tmp_path / "m.caveat")
    rows = mixed(300, seed=1).drop(columns=["y", "label"])
    rows["when"] = rows["when"].astype("datetime64[us]")  # Spark has no nanoseconds
    (tmp_path / "in").mkdir()
    rows.to_parquet(tmp_path / "in/a.parquet", row_group_size=100)
    code = FUNCTION[1] + CALL[1]
    for path in ("m.caveat", "in/", "out/"):  # Spark stays where it was started
        assert f'"{path}"' in code
        code = code.replace(f'"{path}"', f'"{tmp_path / path}"')
    exec(code, {"spark": spark, "caveat": caveat})
    found = pq.read_table(tmp_path / "out")
    expected = model.predict_table(rows)
    assert found.num_rows == 300 and found.schema.names == expected.schema.names
    key = "y_mean" if make is quick_model else "label_prob_high"
    order = [np.argsort(t[key].to_numpy(), kind="stable") for t in (found, expected)]
    for name in expected.schema.names:
        ours, theirs = (
            t[name].to_numpy()[o]
            for t, o in zip((expected, found), order[::-1], strict=True)
        )
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-12)
        else:
            assert theirs.tolist() == ours.tolist()
