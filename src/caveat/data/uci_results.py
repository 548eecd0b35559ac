"""What others measured on the UCI sets, and with which settings.

These tables were typed from papers and collected from the logs of the authors. They
are on no server: they are found in the folder named by ``CAVEAT_DATA``, or nowhere.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from caveat.data import storage
from caveat.data.storage import DataFile, Dataset, Edition
from caveat.data.tables import read_rows
from caveat.data.uci import uci_set

_NONE = ("", "NA")
_SOURCE = "papers, readme files and logs, named in each row"


@dataclass(frozen=True)
class PublishedResult:
    """A number of a published table.

    Attributes
    ----------
    source, method : str
    hidden_layers, epochs : int or None
        None if the source does not say.
    dataset : str
        The short name, such as ``"boston"``.
    metric : str
        ``"rmse"``, or ``"ll"``: test log-likelihood in nats, higher is better.
    mean : float
        Over the splits.
    spread : float or None
    spread_type : str
        ``"se"``, ``"sd"``, ``"as printed"``, or empty.
    note : str
    """

    source: str
    method: str
    hidden_layers: int | None
    epochs: int | None
    dataset: str
    metric: str
    mean: float
    spread: float | None
    spread_type: str
    note: str


@dataclass(frozen=True)
class SplitResult:
    """What the authors of MC dropout measured on one split.

    Attributes
    ----------
    dataset : str
        The short name, such as ``"boston"``.
    variant : str
        ``"original_1x"``, ``"10x_epochs"``, ``"2_layers"`` or ``"grid_search_2018"``.
    split : int
    rmse_single : float
        Of weight averaging; of one stochastic pass in the variant of 2018.
    rmse_mc, ll_mc : float
        Of MC dropout: error, and log-likelihood in nats.
    precision : float or None
        The τ chosen for the split; None where it is that of the settings.
    train_seconds : float or None
    """

    dataset: str
    variant: str
    split: int
    rmse_single: float
    rmse_mc: float
    ll_mc: float
    precision: float | None = field(metadata={"column": "tau"})
    train_seconds: float | None


@dataclass(frozen=True)
class OriginalSettings:
    """The settings of the paper's run on one set.

    Attributes
    ----------
    dataset : str
        The short name, such as ``"boston"``.
    n_hidden, n_epochs, n_splits : int
        The paper trains for ten times ``n_epochs``.
    drop_rate, precision, lengthscale : float
        The precision τ is for targets in their own units.
    batch_size : int
        Of the paper's run.
    later_batch_size : int or None
        Of the runs with more epochs or layers.
    search_batch_size, search_splits, search_epoch_multiplier : int
        Of the search for the precision.
    search_low, search_high : float
        The range of the precision that was searched.
    search_best_neg_ll : float
        The negative log-likelihood, in nats, of the precision that was chosen.
    n_draws : int
    """

    dataset: str
    n_hidden: int = field(metadata={"column": "n_hidden_units"})
    n_epochs: int = field(metadata={"column": "base_epochs"})
    n_splits: int
    drop_rate: float = field(metadata={"column": "dropout"})
    precision: float = field(metadata={"column": "tau_from_bo"})
    lengthscale: float
    batch_size: int = field(metadata={"column": "batch_size_paper_run"})
    later_batch_size: int | None = field(
        metadata={"column": "batch_size_10x_and_2layer_runs"}
    )
    search_batch_size: int = field(metadata={"column": "batch_size_bo"})
    search_low: float = field(metadata={"column": "tau_bo_min"})
    search_high: float = field(metadata={"column": "tau_bo_max"})
    search_splits: int = field(metadata={"column": "bo_splits"})
    search_epoch_multiplier: int = field(metadata={"column": "bo_epoch_multiplier"})
    search_best_neg_ll: float = field(metadata={"column": "bo_best_neg_ll"})
    n_draws: int = field(metadata={"column": "mc_samples_T"})


@dataclass(frozen=True)
class GridSettings:
    """The settings of the authors' rerun of 2018 on one set.

    Attributes
    ----------
    dataset : str
        The short name, such as ``"boston"``.
    n_hidden, n_epochs, epoch_multiplier, n_layers, n_splits : int
        It trains for ``n_epochs * epoch_multiplier`` epochs.
    drop_rates, precisions : tuple of float
        The grid; precisions τ are for targets in their own units.
    lengthscale : float
    batch_size, n_draws : int
    """

    dataset: str
    n_hidden: int = field(metadata={"column": "n_hidden_units"})
    n_epochs: int = field(metadata={"column": "base_epochs"})
    epoch_multiplier: int
    n_layers: int = field(metadata={"column": "n_hidden_layers"})
    n_splits: int
    drop_rates: tuple[float, ...] = field(metadata={"column": "dropout_grid"})
    precisions: tuple[float, ...] = field(metadata={"column": "tau_grid"})
    lengthscale: float
    batch_size: int
    n_draws: int = field(metadata={"column": "mc_samples_T"})


Record = TypeVar("Record", PublishedResult, SplitResult, OriginalSettings, GridSettings)

_TABLES: dict[type, str] = {
    PublishedResult: "uci/published_results.csv",
    SplitResult: "uci/per_split_results.csv",
    OriginalSettings: "uci/hyperparameters_original.csv",
    GridSettings: "uci/hyperparameters_grid_2018.csv",
}

UCI_RESULTS = Dataset(
    "uci-results",
    "published results on the UCI sets, per split too, and their settings",
    "facts, quoted with their sources",
    (Edition(_SOURCE, tuple(DataFile(path) for path in _TABLES.values())),),
)


def load_uci_published() -> tuple[PublishedResult, ...]:
    """The published tables for the UCI sets: MC dropout and the methods beside it.

    Returns
    -------
    tuple of PublishedResult

    Raises
    ------
    DataError
        If the table is not on this machine: it cannot be downloaded.

    Examples
    --------
    >>> table = load_uci_published()  # doctest: +SKIP
    >>> [r.mean for r in table if r.dataset == "yacht" and r.method == "PBP"]
    ... # doctest: +SKIP
    [1.02, -1.63]
    """
    return _load(PublishedResult)


def load_uci_per_split() -> tuple[SplitResult, ...]:
    """The results of MC dropout on each split, from the logs of its authors.

    Returns
    -------
    tuple of SplitResult

    Raises
    ------
    DataError
        If the table is not on this machine: it cannot be downloaded.
    """
    return _load(SplitResult)


def load_uci_settings() -> tuple[OriginalSettings, ...]:
    """The settings behind the numbers of the MC dropout paper, set by set.

    Returns
    -------
    tuple of OriginalSettings

    Raises
    ------
    DataError
        If the table is not on this machine: it cannot be downloaded.
    """
    return _load(OriginalSettings)


def load_uci_grid_settings() -> tuple[GridSettings, ...]:
    """The settings of the authors' grid search of 2018, set by set.

    Returns
    -------
    tuple of GridSettings

    Raises
    ------
    DataError
        If the table is not on this machine: it cannot be downloaded.
    """
    return _load(GridSettings)


def _load(kind: type[Record]) -> tuple[Record, ...]:
    path = storage.obtain(DataFile(_TABLES[kind]))
    columns = {f.name: f.metadata.get("column", f.name) for f in fields(kind)}
    rows = read_rows(path, list(columns.values()))
    with storage.reading(path):
        return tuple(_record(kind, row, columns) for row in rows)


def _record(kind: type[Record], row: dict[str, str], columns: dict[str, str]) -> Record:
    values = {f.name: _PARSERS[f.type](row[columns[f.name]]) for f in fields(kind)}
    values["dataset"] = uci_set(values["dataset"]).name
    return kind(**values)


def _whole(text: str) -> int:
    return int(text.split()[0])  # a remark may follow


def _floats(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split())


_PARSERS: dict[Any, Callable[[str], Any]] = {
    str: str,
    int: _whole,
    float: float,
    int | None: lambda text: None if text in _NONE else _whole(text),
    float | None: lambda text: None if text in _NONE else float(text),
    tuple[float, ...]: _floats,
}
