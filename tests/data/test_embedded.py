"""The loaders give what the packages hold, with its known values."""

import doctest

import numpy as np
import pytest

from caveat.data import embedded, load_co2_monthly, load_digits_images


def test_co2_is_the_monthly_mean_of_the_weekly_series() -> None:
    series = load_co2_monthly()
    assert len(series) == len(series.month) == len(series.year) == 521
    assert series.month[0] == np.datetime64("1958-03")
    assert series.month[-1] == np.datetime64("2001-12")
    assert series.value[0] == pytest.approx(316.1)
    april = np.mean([317.3, 317.6, 317.5, 316.4])  # weekly values of April 1958
    assert series.value[1] == pytest.approx(april)
    assert np.isfinite(series.value).all()


def test_co2_leaves_out_months_without_measurements() -> None:
    months = load_co2_monthly().month
    missing = ["1958-06", "1958-10", "1964-02", "1964-03", "1964-04"]
    assert not np.isin(np.array(missing, dtype="datetime64[M]"), months).any()
    assert (np.diff(months.astype(int)) >= 1).all()


def test_co2_years_are_the_middle_of_the_month() -> None:
    series = load_co2_monthly()
    assert series.year[0] == pytest.approx(1958 + 2.5 / 12)
    assert series.year[-1] == pytest.approx(2001 + 11.5 / 12)


def test_co2_is_that_of_statsmodels() -> None:
    datasets = pytest.importorskip("statsmodels.datasets")
    weekly = datasets.co2.load_pandas().data["co2"]
    monthly = weekly.resample("MS").mean().dropna()
    series = load_co2_monthly()
    assert np.array_equal(series.month, monthly.index.to_numpy("datetime64[M]"))
    assert np.array_equal(series.value, monthly.to_numpy())


def test_digits() -> None:
    digits = load_digits_images()
    assert len(digits) == 1797
    assert digits.image.shape == (1797, 8, 8)
    assert digits.image.dtype == np.float32 and digits.label.dtype == np.int64
    assert digits.image.min() == 0 and digits.image.max() == 1
    assert np.bincount(digits.label).tolist() == [
        178, 182, 177, 183, 181, 182, 181, 179, 174, 180,
    ]  # fmt: skip
    assert digits.image[0, 0].tolist() == [0, 0, 5 / 16, 13 / 16, 9 / 16, 1 / 16, 0, 0]


def test_doctests() -> None:
    assert doctest.testmod(embedded).failed == 0
