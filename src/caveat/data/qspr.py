"""Amino acids: structure and property.

.. [Wold2001] S. Wold, M. Sjöström, L. Eriksson. PLS-regression: a basic tool of
   chemometrics. Chemometrics and Intelligent Laboratory Systems, 2001.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from caveat.data import storage
from caveat.data.storage import DataFile, Dataset, Edition
from caveat.data.tables import numbers, read_rows

_FEATURES = ("PIE", "PIF", "DGR", "SAC", "MR", "Lam", "Vol")
_TARGET = "DDGTS"
_URL = "https://raw.githubusercontent.com/bioc/ropls/devel/data/aminoacids.csv.gz"

_TABLE = Edition("Wold et al. 2001, by bioc/ropls", (DataFile("qspr/aminoacids.csv"),))
_ORIGINAL = Edition(
    "Wold et al. 2001, by bioc/ropls", (DataFile("qspr/aminoacids.csv.gz", (_URL,)),)
)
QSPR_SET = Dataset(
    "qspr",
    "amino acids: 7 measures of structure, and the energy of unfolding a protein",
    "CeCILL (package ropls)",
    (_TABLE, _ORIGINAL),
)


@dataclass(frozen=True, eq=False)
class QSPRData:
    """Properties of amino acids.

    Attributes
    ----------
    X : array of float64, shape (19, 7)
    y : array of float64, shape (19,)
        Free energy of unfolding of the enzyme with the amino acid in one place.
    names : tuple of str
        The amino acids.
    feature_names : tuple of str
    target_name, target_units : str
    source, licence : str
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    names: tuple[str, ...]
    feature_names: tuple[str, ...]
    target_name: str
    target_units: str
    source: str
    licence: str

    def __len__(self) -> int:
        return len(self.y)


def load_qspr() -> QSPRData:
    """Nineteen amino acids with seven correlated measures [Wold2001]_.

    Returns
    -------
    QSPRData

    Raises
    ------
    DataError
        If the file is neither here nor to be downloaded, or is damaged.
    """
    edition = storage.choose(QSPR_SET)
    path = storage.obtain(edition.files[0])
    X, y, names = _read(path, delimiter="," if edition is _TABLE else ";")
    return QSPRData(
        X, y, names, _FEATURES, _TARGET, "kcal/mol", edition.source, QSPR_SET.licence
    )


def _read(
    path: Path, *, delimiter: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[str, ...]]:
    rows = read_rows(path, [*_FEATURES, _TARGET], delimiter=delimiter)
    with storage.reading(path):
        if len(rows) != 19:
            raise storage.damaged(path, f"it should have 19 rows, and has {len(rows)}")
        X = np.column_stack([numbers(rows, name) for name in _FEATURES])
        names = tuple(next(iter(row.values())) for row in rows)
        return X, numbers(rows, _TARGET), names
