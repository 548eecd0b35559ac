"""Averages over replicates of networks, and gains paired by them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from caveat.papers.ensemble.comparison import LONG, MC, N_MEMBERS, TEST, Result
from caveat.papers.page import judged

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Average:
    """Over replicates; of gains: how much better MC dropout is."""

    value: float
    error: float  # its standard error
    n_replicates: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Average":
        """Of a number per replicate."""
        error = float(np.std(values, ddof=1) / math.sqrt(len(values)))
        return cls(float(np.mean(values)), error, len(values))

    @property
    def verdict(self) -> str:
        """In words, by Student's t: few replicates say little about their spread."""
        limit = stats.t.ppf(0.5 + CONFIDENCE / 2.0, self.n_replicates - 1) * self.error
        if abs(self.value) <= limit:
            return judged(f"no difference at {CONFIDENCE:.0%}")
        better = "MC dropout" if self.value > 0 else "the ensemble"
        return judged(f"{better} is better")

    def shown(self, digits: int, *, scale: float = 1.0, sign: str = "") -> str:
        """With its standard error."""
        value, error = scale * self.value, scale * self.error
        return f"{value:{sign}.{digits}f} ± {error:.{digits}f}"


def select(results: Sequence[Result], method: str, n_passes: int) -> list[Result]:
    """One result per replicate, on the test images; all of one kind of network."""
    wanted = (TEST, method, n_passes)
    return [r for r in results if (r.part, r.method, r.n_passes) == wanted]


def passes(results: Sequence[Result], method: str) -> list[int]:
    """The numbers of passes of a method, on the test images."""
    own = (r for r in results if (r.part, r.method) == (TEST, method))
    return sorted({r.n_passes for r in own})


def gain(first: Sequence[Result], second: Sequence[Result], name: str) -> Average:
    """How much better the first is, paired by replicate."""
    sign = -1.0 if name == "error" else 1.0
    pairs = zip(first, second, strict=True)
    return Average.of([sign * (getattr(a, name) - getattr(b, name)) for a, b in pairs])


def share_of_gain(results: Sequence[Result], n_draws: int, name: str) -> float:
    """MC dropout's gain over one plain network as a share of the ensemble's gain."""
    plain, ensemble = select(results, LONG, 1), select(results, LONG, N_MEMBERS)
    own = gain(select(results, MC, n_draws), plain, name).value
    return own / gain(ensemble, plain, name).value


def by_network(records: Sequence[Result]) -> dict[str, list[Result]]:
    """Results of each kind of network."""
    names = dict.fromkeys(r.network for r in records)
    return {name: [r for r in records if r.network == name] for name in names}
