"""The blocks of docs/integrations.md run as they stand, one after the other."""

import re
from pathlib import Path

import pytest

for package in ("lightning", "mlflow", "polars"):
    pytest.importorskip(package)
pyplot = pytest.importorskip("matplotlib.pyplot")
PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"


@pytest.mark.filterwarnings("ignore")  # of the packages that it is about
def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    known = {}
    for block in blocks:
        exec(block, known)
    assert len(blocks) == 5
    pyplot.close("all")
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 21
