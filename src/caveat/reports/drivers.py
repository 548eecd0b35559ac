"""Which columns go with uncertainty: how much of it their groups of rows explain."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_law
from scipy.stats import rankdata

from caveat.evaluation.estimates import Array
from caveat.reports.columns import FeatureColumn, FeatureTable, Rows, as_column

N_GROUPS = 10  # of a column of numbers
_MOST_WORDS = 12  # categories that are groups of their own
_MOST_CELLS = 8_000_000  # rows times columns that are looked at
_FALSE_ALARMS = 0.01  # over all columns together


@final
@dataclass(frozen=True)
class Driver:
    """A column, and how uncertainty differs between groups of its values.

    Attributes
    ----------
    column : FeatureColumn
        With the values looked at.
    share : float
        Of the variance of the ranks of the scores that lies between groups, less what
        chance gives (epsilon squared); from 0 to 1.
    is_sure : bool
        Whether chance is ruled out (1 % over all columns).
    groups : tuple of str
        What each group holds.
    counts : array of int, shape (groups,)
        Rows of each.
    means : array, shape (groups,)
        Mean score of each.
    """

    column: FeatureColumn
    share: float
    is_sure: bool
    groups: tuple[str, ...]
    counts: NDArray[np.int64]
    means: Array

    @property
    def trend(self) -> str:
        """Whether uncertainty rises or falls along a column of numbers."""
        if self.column.numbers is None:
            return "differs between categories"
        known = [name != "missing" for name in self.groups]
        means = self.means[known]
        if len(means) < 3 or np.ptp(means) == 0.0:
            return "differs between values"
        order = np.corrcoef(np.arange(len(means)), rankdata(means))[0, 1]
        if order > 0.8:
            return "rises with it"
        if order < -0.8:
            return "falls with it"
        return f"is highest at {np.array(self.groups)[known][means.argmax()]}"


@final
@dataclass(frozen=True)
class Drivers:
    """All columns that were looked at.

    Attributes
    ----------
    found : tuple of Driver
        The strongest first.
    constant, too_many : tuple of str
        Columns left out: with one value only, and with nearly as many categories as
        rows.
    rows : array of int
        The rows looked at.
    """

    found: tuple[Driver, ...]
    constant: tuple[str, ...]
    too_many: tuple[str, ...]
    rows: Rows


def drivers_of(table: FeatureTable, scores: Array) -> Drivers:
    """How uncertainty goes with each column on its own.

    Parameters
    ----------
    table : FeatureTable
        The columns.
    scores : array, shape (rows,)
        How uncertain each row is.

    Returns
    -------
    Drivers
    """
    n_columns = len(table.names)
    most = int(np.clip(_MOST_CELLS // max(n_columns, 1), 1000, 20_000))
    rows = some_rows(len(scores), most)
    chosen = scores[rows]
    ranks = rankdata(chosen)
    found = list[Driver]()
    constant, too_many = list[str](), list[str]()
    for number, name in enumerate(table.names):
        column = as_column(name, table.take(number, rows))
        codes, groups = _groups(column)
        if len(groups) < 2:
            is_constant = column.numbers is not None or len(set(column.values)) == 1
            (constant if is_constant else too_many).append(name)
            continue
        found.append(_driver(column, codes, groups, ranks, chosen, n_columns))
    found.sort(key=lambda driver: -driver.share)
    return Drivers(tuple(found), tuple(constant), tuple(too_many), rows)


def some_rows(n_rows: int, most: int) -> Rows:
    """All row numbers, or as many drawn at random, always the same, in order."""
    if n_rows <= most:
        return np.arange(n_rows)
    generator = np.random.default_rng(0)
    return np.sort(generator.choice(n_rows, size=most, replace=False))


def _driver(
    column: FeatureColumn,
    codes: NDArray[np.int64],
    groups: list[str],
    ranks: Array,
    scores: Array,
    n_columns: int,
) -> Driver:
    counts = np.bincount(codes, minlength=len(groups))
    n_rows, n_groups = len(ranks), len(groups)
    centre = ranks.mean()
    total = float(((ranks - centre) ** 2).sum())
    means = np.bincount(codes, weights=ranks, minlength=n_groups) / counts
    between = float((counts * (means - centre) ** 2).sum())
    eta = min(between / total, 1.0) if total > 0.0 else 0.0
    free = n_rows - n_groups
    # epsilon² = 1 - (1 - eta²) (n - 1) / (n - k), without the share chance gives
    share = 1.0 - (1.0 - eta) * (n_rows - 1) / free if free > 0 else 0.0
    chance = 1.0
    if free > 0 and eta > 0.0:
        ratio = np.inf if eta == 1.0 else eta / (n_groups - 1) / ((1.0 - eta) / free)
        chance = float(f_law.sf(ratio, n_groups - 1, free))
    with np.errstate(invalid="ignore"):
        level = np.bincount(codes, weights=scores, minlength=n_groups) / counts
    return Driver(
        column,
        max(share, 0.0),
        chance < _FALSE_ALARMS / n_columns,
        tuple(groups),
        counts,
        level,
    )


def _groups(column: FeatureColumn) -> tuple[NDArray[np.int64], list[str]]:
    """The group of each row, and what the groups are called."""
    if column.numbers is None:
        return _word_groups(column)
    return _number_groups(column.numbers, column)


def _number_groups(
    numbers: Array, column: FeatureColumn
) -> tuple[NDArray[np.int64], list[str]]:
    there = np.isfinite(numbers)
    values = np.unique(numbers[there])
    if len(values) <= N_GROUPS:
        codes = np.searchsorted(values, numbers)
        names = [column.word(int((numbers == v).argmax())) for v in values]
    else:
        inner = np.arange(1, N_GROUPS) / N_GROUPS
        edges = np.unique(np.quantile(numbers[there], inner, method="lower"))
        codes = np.searchsorted(edges, numbers)
        names = _ranges(numbers, column, codes, there)
    if not there.all():
        codes = np.where(there, codes, len(names))
        names = [*names, "missing"]
    return _used(codes, names)


def _ranges(
    numbers: Array,
    column: FeatureColumn,
    codes: NDArray[np.int64],
    there: NDArray[np.bool_],
) -> list[str]:
    names = []
    for code in range(int(codes[there].max()) + 1):
        inside = np.flatnonzero(there & (codes == code))
        if len(inside) == 0:
            names.append("")
            continue
        low = inside[numbers[inside].argmin()]
        high = inside[numbers[inside].argmax()]
        ends = dict.fromkeys((column.word(low), column.word(high)))
        names.append(" to ".join(ends))
    return names


def _word_groups(column: FeatureColumn) -> tuple[NDArray[np.int64], list[str]]:
    names, codes, counts = np.unique(
        column.values.astype(str), return_inverse=True, return_counts=True
    )
    if len(names) > max(20, len(codes) // 2):
        return codes, []
    order = np.argsort(-counts, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    shown = [str(names[k]) for k in order[:_MOST_WORDS]]
    if len(order) > _MOST_WORDS:
        shown.append(f"{len(order) - _MOST_WORDS} others")
    return _used(np.minimum(place[codes], len(shown) - 1), shown)


def _used(
    codes: NDArray[np.int64], names: list[str]
) -> tuple[NDArray[np.int64], list[str]]:
    """Groups that hold rows, numbered anew."""
    there, again = np.unique(codes, return_inverse=True)
    return again, [names[k] for k in there]
