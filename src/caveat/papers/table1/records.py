"""Results of Table 1, one record per split, kept in a CSV file that can be resumed."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from caveat.papers.records import read_records, write_records


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
        Search, training and scoring of this split, by the clock, with one core.
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


class RecordFile:
    """Records on disk; each addition rewrites the file as a whole.

    Parameters
    ----------
    path : Path
        Made when the first record comes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._records = {r.key: r for r in read_records(path, Record)}

    def sorted(self) -> list[Record]:
        """All records, in a fixed order."""
        return [self._records[key] for key in sorted(self._records)]

    def __contains__(self, key: tuple[str, str, str, int]) -> bool:
        return key in self._records

    def add(self, records: Iterable[Record]) -> None:
        """Keep more records; those with the same key are replaced."""
        self._records.update({record.key: record for record in records})
        write_records(self._path, self.sorted())
