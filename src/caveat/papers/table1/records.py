"""Results of Table 1, one record per split, kept in a CSV file that can be resumed."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True)
class Record:
    """What was measured on the test rows of one split.

    Attributes
    ----------
    protocol, variant : str
        Such as ``"best"``, ``"2 layers"``.
    dataset : str
    split : int
    rmse, log_likelihood : float
        In the units of y; log_likelihood is the mean log density in nats.
    rmse_weight_averaging : float
        Of one pass with the noise off.
    scale : float
        The precision tau, or, with a noise head, the factor on the learned ones.
    drop_rate, input_drop_rate : float
    hidden_layers, epochs, n_networks, n_draws : int
        Draws are per network.
    seconds : float
        Search, training and scoring of this split, on one core.
    """

    protocol: str
    variant: str
    dataset: str
    split: int
    rmse: float
    log_likelihood: float
    rmse_weight_averaging: float
    scale: float
    drop_rate: float
    input_drop_rate: float
    hidden_layers: int
    epochs: int
    n_networks: int
    n_draws: int
    seconds: float

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells records apart."""
        return self.protocol, self.variant, self.dataset, self.split

    @classmethod
    def from_row(cls, row: dict[str, str]) -> Self:
        """From a line of the file."""
        kinds: dict[str, Any] = {f.name: f.type for f in fields(cls)}
        return cls(**{name: kind(row[name]) for name, kind in kinds.items()})


class RecordFile:
    """Records on disk; each addition rewrites the file as a whole.

    Parameters
    ----------
    path : Path
        Made when the first record comes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._records = {record.key: record for record in self._read()}

    def __iter__(self) -> Iterator[Record]:
        return iter(self.sorted())

    def sorted(self) -> list[Record]:
        """All records, in a fixed order."""
        return [self._records[key] for key in sorted(self._records)]

    def __contains__(self, key: tuple[str, str, str, int]) -> bool:
        return key in self._records

    def add(self, records: Iterable[Record]) -> None:
        """Keep more records; those with the same key are replaced."""
        self._records.update({record.key: record for record in records})
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".part")
        with draft.open("w", newline="") as file:
            names = [f.name for f in fields(Record)]
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            for record in self.sorted():
                writer.writerow(_rounded(asdict(record)))
        draft.replace(self._path)

    def _read(self) -> list[Record]:
        if not self._path.exists():
            return []
        with self._path.open(newline="") as file:
            return [Record.from_row(row) for row in csv.DictReader(file)]


def _rounded(row: dict[str, object]) -> dict[str, object]:
    return {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
