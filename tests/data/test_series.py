"""The paper's CO2 and solar arrays, and what stands in for them."""

import doctest
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from caveat.data import load_co2, load_co2_monthly, load_solar, series
from caveat.data.series import CO2Transform
from caveat.errors import DataError, MissingExtraError
from tests.data.conftest import write


def test_co2_of_the_paper(real_data: Path) -> None:
    co2 = load_co2()
    assert (len(co2.train), len(co2.x_test), len(co2.future)) == (272, 1000, 273)
    assert "co2_regression" in co2.source
    assert co2.train.month[0] == np.datetime64("1958-03")
    assert co2.train.month[-1] == np.datetime64("1981-03")
    assert co2.future.month[0] == np.datetime64("1981-04")
    assert co2.future.month[-1] == np.datetime64("2003-12")
    assert co2.train.ppm[0] == 315.71
    assert co2.x_test[0] == pytest.approx(co2.train.x[-1])
    assert np.diff(co2.x_test) == pytest.approx(0.002)
    assert co2.x_test[-1] == pytest.approx(3.7237, abs=5e-5)


def test_co2_transform_is_that_of_the_paper(real_data: Path) -> None:
    co2 = load_co2()
    fitted = CO2Transform.fit(co2.train.ppm)
    for name in ("index_mean", "index_std", "slope", "intercept", "residual_std"):
        expected = getattr(co2.transform, name)
        assert getattr(fitted, name) == pytest.approx(expected, rel=1e-9)
    start = 0
    for part in (co2.train, co2.future):
        index = np.arange(start, start + len(part), dtype=float)
        x, y = co2.transform.apply(index, part.ppm)
        assert x == pytest.approx(part.x, abs=1e-12)
        assert y == pytest.approx(part.y, abs=1e-6)
        assert co2.transform.to_ppm(part.x, part.y) == pytest.approx(part.ppm, abs=1e-5)
        start += len(part)


def test_co2_without_the_arrays_comes_from_the_monthly_series(cache: Path) -> None:
    co2 = load_co2()
    monthly = load_co2_monthly()
    assert "statsmodels" in co2.source
    assert (len(co2.train), len(co2.future)) == (272, 521 - 272)
    assert np.array_equal(np.r_[co2.train.ppm, co2.future.ppm], monthly.value)
    assert co2.train.month[-1] == np.datetime64("1981-03")
    assert co2.train.x.mean() == pytest.approx(0, abs=1e-12)
    assert co2.train.x.std() == pytest.approx(1)
    assert co2.train.y.mean() == pytest.approx(0, abs=1e-9)
    assert co2.train.y.std() == pytest.approx(1)
    assert np.corrcoef(co2.train.x, co2.train.y)[0, 1] == pytest.approx(0, abs=1e-9)
    whole = co2.transform.to_ppm(co2.future.x, co2.future.y)
    assert whole == pytest.approx(co2.future.ppm)


def test_both_co2_agree(
    real_data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = load_co2()
    monkeypatch.setenv("CAVEAT_DATA", str(real_data))
    papers = load_co2()
    assert papers.source != ours.source
    assert np.array_equal(papers.train.month, ours.train.month)
    assert papers.train.x == pytest.approx(ours.train.x, abs=1e-12)
    assert papers.x_test == pytest.approx(ours.x_test, abs=1e-9)
    assert np.abs(papers.train.ppm - ours.train.ppm).max() < 1.5
    assert np.corrcoef(papers.train.y, ours.train.y)[0, 1] > 0.99


def test_damaged_transform(cache: Path) -> None:
    table = b"x,y,year,month,ppm\n0,0,1958,3,315.71\n"
    for name in ("gal_train", "gal_test", "gal_future_truth"):
        write(cache, f"co2/{name}.csv", table)
    write(cache, "co2/gal_transform.json", json.dumps({"x_index_mean": 1}).encode())
    with pytest.raises(DataError, match=r"gal_transform\.json.*x_index_sd"):
        load_co2()


def test_solar(real_data: Path) -> None:
    solar = load_solar()
    assert (len(solar.train), len(solar.test)) == (275, 100)
    every = np.r_[solar.train.index, solar.test.index]
    assert np.array_equal(np.sort(every), np.arange(375))
    assert [(gap.first, gap.last) for gap in solar.gaps] == [
        (17, 36), (92, 111), (167, 186), (242, 261), (317, 336),
    ]  # fmt: skip
    x = np.r_[solar.train.x, solar.test.x][np.argsort(every)]
    assert np.diff(x) == pytest.approx(x[1] - x[0])
    for gap in solar.gaps:
        assert (gap.x_first, gap.x_last) == (x[gap.first], x[gap.last])
    y = np.r_[solar.train.y, solar.test.y]
    assert (y.mean(), y.std()) == pytest.approx((0, 1), abs=1e-6)


class FakeHDF5:
    """A file whose arrays come from the text inside."""

    def __init__(self, path: Path, mode: str) -> None:
        self.columns = json.loads(Path(path).read_text())

    def __enter__(self) -> dict[str, list[list[float]]]:
        return self.columns

    def __exit__(self, *_: object) -> None:
        pass


def write_solar(cache: Path, n_test: int = 100) -> None:
    gaps = np.concatenate([np.arange(17 + 75 * k, 37 + 75 * k) for k in range(5)])
    index = np.arange(375)
    parts = {"train": np.setdiff1d(index, gaps), "test": gaps[:n_test]}
    for name, rows in parts.items():
        data = {"data": (rows[:, None] / 100 - 1).tolist(), "label": rows.tolist()}
        write(cache, f"solar/{name}.h5", json.dumps(data).encode())


def test_solar_from_the_downloaded_form(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", SimpleNamespace(File=FakeHDF5))
    write_solar(cache)
    solar = load_solar()
    assert np.array_equal(solar.train.index, solar.train.y)
    assert np.array_equal(solar.test.index, solar.test.y)
    assert solar.train.x.shape == (275,) and solar.gaps[4].last == 336
    write_solar(cache, n_test=99)
    with pytest.raises(DataError, match="275 and 100 points"):
        load_solar()


def test_solar_says_what_the_downloaded_form_needs(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    write_solar(cache)
    with pytest.raises(MissingExtraError, match="h5py"):
        load_solar()


def test_doctests() -> None:
    assert doctest.testmod(series).failed == 0
