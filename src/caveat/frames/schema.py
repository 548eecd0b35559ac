"""What was learned of the columns of a table: plain data, for people and for files."""

from dataclasses import asdict, dataclass
from typing import Any, final

NUMBER, BOOLEAN, TIME, CATEGORY = "number", "boolean", "time", "category"
OTHER = "(other)"  # the feature that rare categories share
TEXT, INTEGER = "text", "integer"
_FEW = 6  # names in a message


@final
@dataclass(frozen=True)
class Column:
    """A column that is used, and how it becomes features.

    Attributes
    ----------
    name : str
    kind : {"number", "boolean", "time", "category"}
    unit : str or None
        As it was given.
    n_missing : int
        Values that were missing at fit; if any were, an indicator is a feature.
    fill : float or None
        What takes the place of a missing value: the median of numbers and times, the
        more frequent of two booleans. A missing category has no feature set.
    categories : tuple of str
        All that were seen, the most frequent first.
    n_shown : int
        How many of them have a feature; the others share one.
    has_zone : bool
        Whether times say in which zone they are.
    parts : tuple of str
        What is made of a time: ``"days"``, and the phases of ``"day"``, ``"week"``
        and ``"year"`` that vary.
    """

    name: str
    kind: str
    unit: str | None = None
    n_missing: int = 0
    fill: float | None = None
    categories: tuple[str, ...] = ()
    n_shown: int = 0
    has_zone: bool = False
    parts: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features made of it, in order."""
        own = self._own_features()
        return (*own, f"{self.name} is missing") if self.n_missing else own

    def _own_features(self) -> tuple[str, ...]:
        if self.kind == CATEGORY:
            shown = [f"{self.name}={c}" for c in self.categories[: self.n_shown]]
            if self.n_shown < len(self.categories):
                shown.append(f"{self.name}={OTHER}")
            return tuple(shown)
        if self.kind == TIME:
            waves = [p for p in self.parts if p != "days"]
            phases = [f"{self.name} ({w}, {f})" for w in waves for f in ("sin", "cos")]
            return (self.name, *phases)
        return (self.name,)


@final
@dataclass(frozen=True)
class Dropped:
    """A column that is not used, and why.

    Attributes
    ----------
    name : str
    reason : str
        In words.
    """

    name: str
    reason: str


@final
@dataclass(frozen=True)
class Target:
    """The column that is predicted.

    Attributes
    ----------
    name : str
    kind : {"number", "text", "integer", "boolean"}
        Of its values, or of its labels.
    is_label : bool
        Whether it is classified.
    unit : str or None
    n_missing : int
        Rows without it, which were left out.
    """

    name: str
    kind: str
    is_label: bool
    unit: str | None = None
    n_missing: int = 0


@final
@dataclass(frozen=True)
class Schema:
    """All that was learned of a table.

    Attributes
    ----------
    columns : tuple of Column
        Those used, in the order of the features.
    dropped : tuple of Dropped
        Those not used.
    target : Target
    missing : tuple of str
        How missing values are spelled in texts.
    decimal : str
        The decimal sign of numbers in texts.
    n_rows : int
        Rows that were fitted.
    source : str
        What they came from.
    """

    columns: tuple[Column, ...]
    dropped: tuple[Dropped, ...]
    target: Target
    missing: tuple[str, ...]
    decimal: str
    n_rows: int
    source: str

    @property
    def features(self) -> tuple[str, ...]:
        """Names of all features, in the order of the matrix."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def needed(self) -> tuple[str, ...]:
        """Names of the columns that new rows must have."""
        return tuple(column.name for column in self.columns)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    def lines(self) -> list[str]:
        """What was done with the columns, a line each."""
        unit = f" [{self.target.unit}]" if self.target.unit else ""
        found = [
            f"{self.n_rows} rows of {self.source}, target {self.target.name!r}{unit}"
        ]
        if self.target.n_missing:
            found.append(f"left out: {self.target.n_missing} rows without a target")
        for kind in (NUMBER, BOOLEAN, TIME, CATEGORY):
            own = [_told(c) for c in self.columns if c.kind == kind]
            if own:
                found.append(f"{_PLURALS[kind]}: {', '.join(own)}")
        imputed = [_imputed(c) for c in self.columns if c.n_missing]
        if imputed:
            found.append(f"missing, with an indicator: {', '.join(imputed)}")
        found += [f"not used: {d.name!r} ({d.reason})" for d in self.dropped]
        return found


_PLURALS = {
    NUMBER: "numbers",
    BOOLEAN: "booleans",
    TIME: "times",
    CATEGORY: "categories",
}


def _told(column: Column) -> str:
    unit = f" [{column.unit}]" if column.unit else ""
    count = f" ({len(column.categories)})" if column.kind == CATEGORY else ""
    return f"{column.name}{unit}{count}"


def _imputed(column: Column) -> str:
    if column.kind == CATEGORY or column.fill is None:
        return f"{column.name} ({column.n_missing})"
    if column.kind == TIME:
        return f"{column.name} ({column.n_missing}, as the median)"
    return f"{column.name} ({column.n_missing}, as {column.fill:g})"


def some(names: Any) -> str:
    """The first few of some names, for a message."""
    known = list(names)
    shown = ", ".join(repr(name) for name in known[:_FEW])
    return f"{shown} and {len(known) - _FEW} more" if len(known) > _FEW else shown
