"""Figures are drawn where matplotlib is, and left out elsewhere."""

import sys

import pytest
from matplotlib.figure import Figure

from caveat.demo.pictures import save


def test_a_figure_is_written(tmp_path) -> None:
    path = tmp_path / "figure.png"
    assert save(path, lambda: Figure()) == path
    assert path.exists()


def test_without_matplotlib_there_is_none(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = tmp_path / "figure.png"
    assert save(path, lambda: pytest.fail("drawn")) is None
    assert not path.exists()
