"""What data sets there are, and getting them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from caveat import _validation as validation
from caveat.data import reviews, storage, uci
from caveat.data.images import FASHION_SET, MNIST_SET, NOTMNIST_SET
from caveat.data.qspr import QSPR_SET
from caveat.data.series import CO2_SET, SOLAR_SET
from caveat.data.storage import Dataset, Edition
from caveat.data.text import MOVIE_SET, SST2_SET
from caveat.data.uci_results import UCI_RESULTS
from caveat.data.uci_sets import UCI_SETS


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before it is loaded.

    Attributes
    ----------
    name : str
        As `fetch` takes it.
    description : str
    licence : str
    present : Path or None
        The folder on this machine that holds it, if one does.
    downloadable : bool
        Whether it has an address.
    """

    name: str
    description: str
    licence: str
    present: Path | None
    downloadable: bool


def list_datasets() -> tuple[DatasetInfo, ...]:
    """All data sets that Caveat has loaders for, and where they are.

    Returns
    -------
    tuple of DatasetInfo

    Examples
    --------
    >>> [info.name for info in list_datasets()][:3]
    ['boston', 'concrete', 'energy']
    """
    return tuple(_info(dataset) for dataset in _datasets())


def fetch(name: str, *, progress: bool | None = None) -> Path:
    """Make sure that a data set is on this machine, downloading what is missing.

    Parameters
    ----------
    name : str
        One of the names of `list_datasets`.
    progress : bool, optional
        Whether to show a bar; by default on a terminal, if it takes long.

    Returns
    -------
    Path
        The folder that holds it.

    Raises
    ------
    ParameterError
        If there is no data set of that name.
    DataError
        If it cannot be had, or is damaged.
    """
    edition = storage.choose(_named(name))
    paths = [storage.obtain(file, progress=progress) for file in edition.files]
    return paths[0].parent


def _datasets() -> Iterator[Dataset]:
    yield from (uci.dataset(spec) for spec in UCI_SETS)
    yield from (UCI_RESULTS, CO2_SET, SOLAR_SET, MNIST_SET, NOTMNIST_SET, FASHION_SET)
    yield QSPR_SET
    yield from (reviews.dataset(version) for version in reviews.VERSIONS)
    yield from (MOVIE_SET, SST2_SET)


def _named(name: str) -> Dataset:
    datasets = {dataset.name: dataset for dataset in _datasets()}
    return datasets[validation.one_of("name", name, datasets)]


def _info(dataset: Dataset) -> DatasetInfo:
    places = (_place(edition) for edition in dataset.editions)
    return DatasetInfo(
        dataset.name,
        dataset.description,
        dataset.licence,
        next((place for place in places if place is not None), None),
        any(storage.is_downloadable(edition) for edition in dataset.editions),
    )


def _place(edition: Edition) -> Path | None:
    found = storage.find(edition.files[0].path)
    return found.parent if found and storage.is_present(edition) else None
