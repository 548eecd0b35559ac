"""The blocks of docs/integrations.md run as they stand, one after the other."""

import pytest

from tests.pages import run_page

for package in ("lightning", "mlflow", "polars"):
    pytest.importorskip(package)
pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.mark.filterwarnings("ignore")  # of the packages that it is about
def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page("docs/integrations.md")
    pyplot.close("all")
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 21
