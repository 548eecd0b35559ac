"""The amino acids of Wold et al., as the paper describes them."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from caveat.data import load_qspr
from caveat.errors import DataError
from tests.data.conftest import write


def test_facts(real_data: Path) -> None:
    data = load_qspr()
    assert data.X.shape == (19, 7) and data.y.shape == (19,) == (len(data),)
    assert data.names[:2] == ("Ala", "Asn") and list(data.names) == sorted(data.names)
    between = np.abs(np.corrcoef(data.X.T) - np.eye(7)).max()
    assert between == pytest.approx(0.991, abs=5e-4)
    with_y = np.corrcoef(np.c_[data.X, data.y].T)[-1, :-1]
    assert [
        name
        for name, value in zip(data.feature_names, with_y, strict=True)
        if value < 0
    ] == ["DGR"]
    assert with_y.min() == pytest.approx(-0.648, abs=5e-4)


def test_original_form(
    real_data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (real_data / "qspr/aminoacids.csv").read_text().replace(",", ";")
    write(cache, "qspr/aminoacids.csv.gz", gzip.compress(text.encode()))
    original = load_qspr()
    monkeypatch.setenv("CAVEAT_DATA", str(real_data))
    assert np.array_equal(original.X, load_qspr().X)
    assert original.names == load_qspr().names


def test_other_tables_are_refused(cache: Path) -> None:
    head = "AA,PIE,PIF,DGR,SAC,MR,Lam,Vol,DDGTS\n"
    write(cache, "qspr/aminoacids.csv", (head + "Ala,1,2,3,4,5,6,7,8\n").encode())
    with pytest.raises(DataError, match="should have 19 rows, and has 1"):
        load_qspr()
