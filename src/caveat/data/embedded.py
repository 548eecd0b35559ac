"""Data sets that come with this package, or one it needs: nothing is downloaded.

.. [Keeling] C. D. Keeling, T. P. Whorf. Atmospheric CO2 concentrations derived from
   flask air samples at sites in the SIO network, 2004; as ``statsmodels.datasets.co2``,
   in the public domain.
.. [Alpaydin] E. Alpaydin, C. Kaynak. Optical recognition of handwritten digits, UCI
   repository, 1998; as ``sklearn.datasets.load_digits``.
"""

from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class MonthlySeries:
    """Monthly means, in order; months without a measurement are left out.

    Attributes
    ----------
    month : array of datetime64[M], shape (months,)
    year : array of float, shape (months,)
        The middle of the month as a decimal year.
    value : array of float, shape (months,)
    """

    month: NDArray[np.datetime64]
    year: NDArray[np.float64]
    value: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.value)


@dataclass(frozen=True, eq=False)
class DigitImages:
    """Handwritten digits.

    Attributes
    ----------
    image : array of float32, shape (images, 8, 8)
        From 0, paper, to 1, ink.
    label : array of int64, shape (images,)
        The digit, 0 to 9.
    """

    image: NDArray[np.float32]
    label: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.label)


def load_co2_monthly() -> MonthlySeries:
    """Atmospheric CO2 at Mauna Loa in ppm, March 1958 to December 2001 [Keeling]_.

    Means of the weekly values of a month. Five months have none, so that there are
    521 of 526.

    Returns
    -------
    MonthlySeries
        With values in ppm (millionths of volume).

    Examples
    --------
    >>> series = load_co2_monthly()
    >>> series.month[0], series.value[0]
    (np.datetime64('1958-03'), np.float64(316.1))
    """
    text = files("caveat.data").joinpath("co2_monthly.csv").read_text("utf-8")
    rows = [line.split(",") for line in text.splitlines() if line[0].isdigit()]
    month = np.array([when for when, _ in rows], dtype="datetime64[M]")
    since_1970 = month.astype(np.int64)  # in months
    value = np.array([float(ppm) for _, ppm in rows])
    return MonthlySeries(month, 1970 + (since_1970 + 0.5) / 12, value)


def load_digits_images() -> DigitImages:
    """The 1797 digits of scikit-learn, 8 × 8 pixels [Alpaydin]_.

    Returns
    -------
    DigitImages
        In scikit-learn's order, scaled to [0, 1].

    Examples
    --------
    >>> digits = load_digits_images()
    >>> digits.image.shape, digits.label[:5]
    ((1797, 8, 8), array([0, 1, 2, 3, 4]))
    """
    from sklearn.datasets import load_digits  # here: it brings pandas, if installed

    bunch = load_digits()
    image = (bunch.images / 16.0).astype(np.float32)  # 16 grey levels above paper
    return DigitImages(image, bunch.target.astype(np.int64))
