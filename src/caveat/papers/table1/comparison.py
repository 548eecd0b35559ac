"""Our results beside the published ones: means, standard errors, wins and losses."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from caveat.data import (
    load_uci,
    load_uci_grid_settings,
    load_uci_per_split,
    load_uci_published,
)
from caveat.papers.table1.jobs import Record

METRICS = {"rmse": "RMSE", "ll": "log-likelihood"}
OPPONENTS = {
    "VI": ("Gal & Ghahramani 2015", "VI (Graves 2011)"),
    "PBP": ("Gal & Ghahramani 2015", "PBP"),
    "Dropout (paper)": ("Gal & Ghahramani 2015", "MC dropout"),
    "10x epochs": ("a6259f1", "MC dropout (10x epochs)"),
    "2 layers (2016)": ("a6259f1", "MC dropout (2 layers)"),
    "grid (2018)": ("6eb4497", "MC dropout (grid search)"),
    "Deep Ensembles": ("Lakshminarayanan", "Deep ensembles (5 nets)"),
}
RERUN = {"pbp": "PBP", "vi": "VI"}  # protocols that give a published column again
LOGGED = {
    "Dropout (paper)": "original_1x",
    "10x epochs": "10x_epochs",
    "2 layers (2016)": "2_layers",
    "grid (2018)": "grid_search_2018",
}
ROUNDING = 0.005  # of published numbers, which have two decimals
PAIRED_WITH = {
    ("paper", "published precision"): "original_1x",
    ("paper", "searched precision"): "original_1x",
    ("best", "1 layer"): "grid_search_2018",
    ("best", "2 layers"): "grid_search_2018",
    ("flagship", "5 networks"): "grid_search_2018",
}


class SplitMean(NamedTuple):
    """A mean over splits and its standard error."""

    mean: float
    error: float


@dataclass(frozen=True)
class Row:
    """One variant on one data set."""

    variant: str
    dataset: str
    n_splits: int
    ours: dict[str, SplitMean]  # by metric
    paired: dict[str, SplitMean]  # ours minus the authors' on the same splits, if any
    published: dict[str, dict[str, SplitMean]]  # by opponent and metric
    cap: float  # the largest log-likelihood that the 2018 grid's precisions allow
    seconds: float  # per split

    @property
    def gains_by_precision(self) -> bool:
        """Whether our log-likelihood is above all the 2018 grid could have given."""
        return self.ours["ll"].mean > self.cap


def rows(records: Sequence[Record]) -> list[Row]:
    """A row per variant and data set, from records of one protocol."""
    groups = dict.fromkeys((r.variant, r.dataset) for r in records)
    return [
        _row([r for r in records if (r.variant, r.dataset) == group])
        for group in groups
    ]


def verdict(metric: str, ours: SplitMean, theirs: SplitMean) -> str:
    """``"win"``, ``"tie"`` (within one combined standard error) or ``"lose"``."""
    gap = theirs.mean - ours.mean if metric == "rmse" else ours.mean - theirs.mean
    combined = math.hypot(ours.error, theirs.error)
    if abs(gap) <= combined:
        return "tie"
    return "win" if gap > 0 else "lose"


def gap_in_errors(ours: SplitMean, theirs: SplitMean) -> float:
    """Ours minus theirs in combined standard errors; infinite if neither has any."""
    gap, combined = ours.mean - theirs.mean, math.hypot(ours.error, theirs.error)
    return gap / combined if combined else math.copysign(math.inf, gap)


def paired_z(difference: SplitMean) -> float:
    """The paired difference in standard errors."""
    return difference.mean / difference.error if difference.error else 0.0


def as_standard_errors(rows: Sequence[Row], opponent: str) -> list[Row]:
    """Rows with the spreads of an opponent read as standard errors of its means."""
    n_splits = {row.dataset: len(load_uci(row.dataset).splits) for row in rows}

    def widened(value: SplitMean, dataset: str) -> SplitMean:
        own = math.sqrt(max(value.error**2 - ROUNDING**2, 0.0))
        return SplitMean(
            value.mean, math.hypot(own * math.sqrt(n_splits[dataset]), ROUNDING)
        )

    return [
        replace(
            row,
            published=row.published
            | {
                opponent: {
                    metric: widened(value, row.dataset)
                    for metric, value in row.published.get(opponent, {}).items()
                }
            },
        )
        for row in rows
    ]


def _row(records: Sequence[Record]) -> Row:
    first = records[0]
    return Row(
        variant=first.variant,
        dataset=first.dataset,
        n_splits=len(records),
        ours={m: _value([_metric(r, m) for r in records]) for m in METRICS},
        paired=_paired(records),
        published=_published(first.dataset),
        cap=_cap(first.dataset),
        seconds=float(np.mean([r.seconds for r in records])),
    )


def _metric(record: Record, metric: str) -> float:
    return record.rmse if metric == "rmse" else record.log_likelihood


def _value(values: Iterable[float]) -> SplitMean:
    found = np.array(list(values))
    error = found.std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else math.nan
    return SplitMean(float(found.mean()), float(error))


def _paired(records: Sequence[Record]) -> dict[str, SplitMean]:
    first = records[0]
    variant = PAIRED_WITH.get((first.protocol, first.variant))
    theirs = {
        r.split: {"rmse": r.rmse_mc, "ll": r.ll_mc}
        for r in load_uci_per_split()
        if r.variant == variant and r.dataset == first.dataset
    }
    shared = [r for r in records if r.split in theirs]
    if not shared:
        return {}
    return {
        m: _value([_metric(r, m) - theirs[r.split][m] for r in shared]) for m in METRICS
    }


def _published(dataset: str) -> dict[str, dict[str, SplitMean]]:
    """By the authors' own logs where there are some, else as printed."""
    found: dict[str, dict[str, SplitMean]] = {}
    n_splits = len(load_uci(dataset).splits)
    for result in load_uci_published():
        for name, (source, method) in OPPONENTS.items():
            meant = result.dataset == dataset and result.method == method
            if meant and source in result.source:
                error = _standard_error(result.spread, result.spread_type, n_splits)
                value = SplitMean(result.mean, math.hypot(error, ROUNDING))
                found.setdefault(name, {})[result.metric] = value
    for name, variant in LOGGED.items():
        logged = [
            r
            for r in load_uci_per_split()
            if r.dataset == dataset and r.variant == variant
        ]
        if len(logged) == n_splits > 1:
            found[name] = {
                "rmse": _value(r.rmse_mc for r in logged),
                "ll": _value(r.ll_mc for r in logged),
            }
    return found


def _standard_error(spread: float | None, kind: str, n_splits: int) -> float:
    """Standard deviations become errors; Deep Ensembles' spreads are read as such."""
    if spread is None:
        return 0.0
    return spread if kind == "se" else spread / math.sqrt(n_splits)


def _cap(dataset: str) -> float:
    """log p <= 1/2 log(tau / 2 pi), with the largest tau of the 2018 grid."""
    for given in load_uci_grid_settings():
        if given.dataset == dataset:
            return 0.5 * math.log(max(given.precisions) / (2 * math.pi))
    return math.inf
