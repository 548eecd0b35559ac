"""The blocks of docs/export.md run as they stand, one after the other."""

from tests.pages import run_page


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page("docs/export.md")
    assert (tmp_path / "net.onnx").exists()
