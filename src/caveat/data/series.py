"""The two time series of the MC dropout paper: CO2 and solar irradiance.

.. [Gal2016] Y. Gal, Z. Ghahramani. Dropout as a Bayesian approximation. ICML 2016;
   arrays of the repository yaringal/DropoutUncertaintyCaffeModels.
"""

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from caveat._optional import require
from caveat.data import storage
from caveat.data.embedded import load_co2_monthly
from caveat.data.storage import DataFile, Dataset, Edition
from caveat.data.tables import Rows, numbers, read_rows

Array = NDArray[np.float64]

_N_TRAIN = 272
_GRID = 0.002 * np.arange(1000)
_CAFFE = "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyCaffeModels"
_REPOSITORY = "yaringal/DropoutUncertaintyCaffeModels"

CO2_SET = Dataset(
    "co2",
    "CO2 at Mauna Loa as the paper uses it (else made of monthly means)",
    "MIT (repository); NOAA and Scripps data, public with citation",
    (
        Edition(
            f"{_REPOSITORY}, co2_regression",
            (
                DataFile("co2/gal_train.csv"),
                DataFile("co2/gal_test.csv"),
                DataFile("co2/gal_future_truth.csv"),
                DataFile("co2/gal_transform.json"),
            ),
        ),
    ),
)

_SOLAR_TABLES = Edition(
    f"{_REPOSITORY}, solar_regression",
    (DataFile("solar/gal_train.csv"), DataFile("solar/gal_test.csv")),
)
_SOLAR_HDF5 = Edition(
    f"{_REPOSITORY}, solar_regression",
    tuple(
        DataFile(
            f"solar/{part}.h5", (f"{_CAFFE}/master/solar_regression/data/{part}.h5",)
        )
        for part in ("train", "test")
    ),
)
SOLAR_SET = Dataset(
    "solar",
    "solar irradiance as the paper uses it, with five gaps",
    "MIT (repository)",
    (_SOLAR_TABLES, _SOLAR_HDF5),
)


@dataclass(frozen=True)
class CO2Transform:
    """From months and ppm to the paper's x and y, and back.

    x is the number of the month, standardised; y is what is left of the ppm without a
    straight line, in standard deviations. Both are measured on the training months.

    Attributes
    ----------
    index_mean, index_std : float
        Of the numbers of the months.
    slope, intercept : float
        Of the straight line, in ppm by the number of the month.
    residual_std : float
        What one unit of y is, in ppm.
    """

    index_mean: float
    index_std: float
    slope: float
    intercept: float
    residual_std: float

    @classmethod
    def fit(cls, ppm: Array) -> Self:
        """The transform that these training months give."""
        index = np.arange(len(ppm))
        slope, intercept = np.polyfit(index, ppm, 1)
        residual = ppm - (slope * index + intercept)
        return cls(
            float(index.mean()), float(index.std()), float(slope), float(intercept),
            float(residual.std()),
        )  # fmt: skip

    def apply(self, index: Array, ppm: Array) -> tuple[Array, Array]:
        """The x and y of months counted from the first of the series."""
        x = (index - self.index_mean) / self.index_std
        return x, (ppm - self._line(index)) / self.residual_std

    def to_ppm(self, x: Array, y: Array) -> Array:
        """The ppm that stand behind points of the paper's plot."""
        return y * self.residual_std + self._line(x * self.index_std + self.index_mean)

    def _line(self, index: Array) -> Array:
        return self.slope * index + self.intercept


@dataclass(frozen=True, eq=False)
class CO2Months:
    """Months of the series.

    Attributes
    ----------
    x, y : arrays of float64, shape (months,)
        As the paper scales them.
    month : array of datetime64[M], shape (months,)
    ppm : array of float64, shape (months,)
    """

    x: Array
    y: Array
    month: NDArray[np.datetime64]
    ppm: Array

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class CO2Data:
    """CO2 at Mauna Loa as the paper extrapolates it.

    Attributes
    ----------
    train : CO2Months
        The 272 months to train on, March 1958 to March 1981.
    x_test : array of float64, shape (1000,)
        Where the paper predicts, from the last training month on.
    future : CO2Months
        What came after the training months; not seen by the paper.
    transform : CO2Transform
    source, licence : str
    """

    train: CO2Months
    x_test: Array
    future: CO2Months
    transform: CO2Transform
    source: str
    licence: str


class SolarGap(NamedTuple):
    """A run of points that are left out.

    Attributes
    ----------
    first, last : int
        Numbers of its points in the series.
    x_first, x_last : float
        Their x.
    """

    first: int
    last: int
    x_first: float
    x_last: float


@dataclass(frozen=True, eq=False)
class SolarPoints:
    """Points of the series.

    Attributes
    ----------
    x, y : array, shape (points,)
        Standardised.
    index : array of int64, shape (points,)
        Their numbers in the series.
    """

    x: Array
    y: Array
    index: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class SolarData:
    """Solar irradiance as the paper interpolates it, standardised.

    Attributes
    ----------
    train, test : SolarPoints
        275 and 100 of 375 equally spaced points.
    gaps : tuple of SolarGap
        The five runs of test points.
    source, licence : str
    """

    train: SolarPoints
    test: SolarPoints
    gaps: tuple[SolarGap, ...]
    source: str
    licence: str


def load_co2() -> CO2Data:
    """CO2 at Mauna Loa with the paper's training set and scales [Gal2016]_.

    These are the very arrays of the paper if they are in the data folder. If not,
    the same months are put through the same transform, from the slightly different
    series that comes with Caveat; ``source`` says which.

    Returns
    -------
    CO2Data

    Examples
    --------
    >>> co2 = load_co2()
    >>> len(co2.train), str(co2.train.month[-1])
    (272, '1981-03')
    """
    edition = CO2_SET.editions[0]
    return _paper_co2(edition) if storage.is_present(edition) else _monthly_co2()


def load_solar() -> SolarData:
    """Solar irradiance with the paper's training points and gaps [Gal2016]_.

    Returns
    -------
    SolarData

    Raises
    ------
    DataError
        If the files are neither here nor to be downloaded, or are damaged.
    MissingExtraError
        If they were downloaded, which are HDF5 files, and h5py is not installed.
    """
    edition = storage.choose(SOLAR_SET)
    paths = [storage.obtain(file) for file in edition.files]
    parts = _solar_tables if edition is _SOLAR_TABLES else _solar_hdf5
    train, test = parts(*paths)
    if (len(train), len(test)) != (275, 100):
        raise storage.damaged(
            paths[0], f"275 and 100 points belong there, not {len(train)}, {len(test)}"
        )
    return SolarData(train, test, _gaps(test), edition.source, SOLAR_SET.licence)


def _paper_co2(edition: Edition) -> CO2Data:
    train, test, future, transform = (storage.obtain(file) for file in edition.files)
    return CO2Data(
        _months(train),
        numbers(read_rows(test, ["x"]), "x"),
        _months(future),
        _read_transform(transform),
        edition.source,
        CO2_SET.licence,
    )


def _months(path: Path) -> CO2Months:
    rows = read_rows(path, ["x", "y", "year", "month", "ppm"])
    with storage.reading(path):
        dates = [f"{int(row['year']):04}-{int(row['month']):02}" for row in rows]
        x, y, ppm = (numbers(rows, column) for column in ("x", "y", "ppm"))
        return CO2Months(x, y, np.array(dates, dtype="datetime64[M]"), ppm)


def _read_transform(path: Path) -> CO2Transform:
    with storage.reading(path):
        values = json.loads(path.read_text())
        return CO2Transform(
            values["x_index_mean"],
            values["x_index_sd"],
            values["ppm_trend_slope_per_index"],
            values["ppm_trend_intercept"],
            values["residual_sd_ppm"],
        )


def _monthly_co2() -> CO2Data:
    series = load_co2_monthly()
    transform = CO2Transform.fit(series.value[:_N_TRAIN])
    x, y = transform.apply(np.arange(len(series), dtype=np.float64), series.value)
    train, future = (
        CO2Months(x[part], y[part], series.month[part], series.value[part])
        for part in (slice(_N_TRAIN), slice(_N_TRAIN, None))
    )
    source = "statsmodels.datasets.co2, monthly means, by the paper's transform"
    return CO2Data(
        train, train.x[-1] + _GRID, future, transform, source, "public domain"
    )


def _solar_tables(train: Path, test: Path) -> tuple[SolarPoints, SolarPoints]:
    return _points(train), _points(test)


def _points(path: Path) -> SolarPoints:
    rows: Rows = read_rows(path, ["x", "y", "index"])
    with storage.reading(path):
        x, y, index = (numbers(rows, column) for column in ("x", "y", "index"))
        return SolarPoints(x, y, index.astype(np.int64))


def _solar_hdf5(train: Path, test: Path) -> tuple[SolarPoints, SolarPoints]:
    (x_train, y_train), (x_test, y_test) = _read_hdf5(train), _read_hdf5(test)
    every = np.concatenate([x_train, x_test])
    step = (every.max() - every.min()) / (len(every) - 1)
    index_train, index_test = (
        np.rint((x - every.min()) / step).astype(np.int64) for x in (x_train, x_test)
    )
    return (
        SolarPoints(x_train, y_train, index_train),
        SolarPoints(x_test, y_test, index_test),
    )


def _read_hdf5(path: Path) -> tuple[Array, Array]:
    h5py: Any = require("h5py", extra="hdf5")
    with storage.reading(path), h5py.File(path, "r") as file:
        x, y = (np.asarray(file[key], np.float64).ravel() for key in ("data", "label"))
        return x, y


def _gaps(test: SolarPoints) -> tuple[SolarGap, ...]:
    breaks = np.flatnonzero(np.diff(test.index) != 1) + 1
    edges = [0, *breaks.tolist(), len(test)]
    index, x = test.index.tolist(), test.x.tolist()
    return tuple(
        SolarGap(index[a], index[b - 1], x[a], x[b - 1]) for a, b in pairwise(edges)
    )
