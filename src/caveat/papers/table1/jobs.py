"""What a job of Table 1 is given, and what a protocol decides for each split."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caveat.data import load_uci
from caveat.training import NetworkSpec, Task

Key = tuple[str, str, str, int]  # protocol, variant, set, split


@dataclass(frozen=True)
class Record:
    """What was measured on the test rows of one split, in the units of y."""

    protocol: str
    variant: str
    dataset: str
    split: int
    rmse: float
    log_likelihood: float  # mean log density, nats
    rmse_weight_averaging: float  # of one pass with the noise off
    scale: float  # tau, or with a noise head the factor on the learned ones
    drop_rate: float
    input_drop_rate: float
    hidden_layers: int
    epochs: int
    n_networks: int
    n_draws: int  # per network
    seconds: float  # of CPU: search, training and scoring of this split
    learning_rate: float = math.nan  # the peak of Adam's; NaN in older files
    ll_twins: float = math.nan  # of test rows that are training rows, too, if any
    ll_others: float = math.nan  # of the rest

    @property
    def key(self) -> Key:
        """What tells records apart."""
        return self.protocol, self.variant, self.dataset, self.split


Array = NDArray[np.float64]


@dataclass(frozen=True)
class Job:
    """Some splits of a data set under a protocol."""

    protocol: str
    variants: tuple[str, ...]  # rows of the table that come of the same networks
    dataset: str
    splits: tuple[int, ...]
    quick: bool = False  # a twentieth of the epochs and few draws

    @property
    def keys(self) -> list[Key]:
        """Those of its records."""
        return [
            (self.protocol, variant, self.dataset, split)
            for split in self.splits
            for variant in self.variants
        ]

    def shortened(self, epochs: int) -> int:
        """So many epochs, or a twentieth of them in a smoke test."""
        return max(2, epochs // 20) if self.quick else epochs

    @property
    def n_draws(self) -> int:
        """Draws per network on test rows: 10,000 as in the paper, or 1,000."""
        if self.variants == ("no dropout",):
            return 1
        if self.quick:
            return 100
        return 10_000 if self.protocol == "paper" else 1_000

    def rows(self) -> "list[SplitRows]":
        """The rows of its splits."""
        data = load_uci(self.dataset)
        found = []
        for number in self.splits:
            x, y, x_test, y_test = data.split(number)
            found.append(SplitRows(number, x, y[:, None], x_test, y_test[:, None]))
        return found


@dataclass(frozen=True, eq=False)
class SplitRows:
    """Training and test rows of a split; y as a column."""

    number: int
    x: Array
    y: Array
    x_test: Array
    y_test: Array

    @property
    def has_twin(self) -> NDArray[np.bool_]:
        """Which test rows are training rows, too, in all columns."""
        known = {row.tobytes() for row in np.column_stack([self.x, self.y])}
        tested = np.column_stack([self.x_test, self.y_test])
        return np.array([row.tobytes() in known for row in tested])

    @property
    def task(self) -> Task:
        """What a search may see."""
        return Task(f"split {self.number}", self.x, self.y, seed=self.number)


@dataclass(frozen=True)
class SplitPlan:
    """What a protocol decided for one split: a spec, and a scale per variant."""

    spec: NetworkSpec
    scales: tuple[float, ...]
