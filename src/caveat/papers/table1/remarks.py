"""What the pages of Table 1 say beside their tables: verdict, differences, twins."""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from caveat.data import load_uci, load_uci_published
from caveat.papers.page import flow, holds, judged
from caveat.papers.table1.comparison import (
    METRICS,
    OPPONENTS,
    RERUN,
    Row,
    as_standard_errors,
    gap_in_errors,
    paired_z,
    verdict,
)
from caveat.papers.table1.jobs import Job, Record

CLOSE = 3.0  # standard errors
PUBLISHED = "published precision"  # the variant that is the paper's own
_KINDS = ("win", "tie", "lose")
_ENSEMBLES = "Deep Ensembles"


def lead(protocol: str, rows: Sequence[Row]) -> str:
    """The first line: the paper, ours, and whether it holds."""
    if protocol in RERUN:
        return _lead_of_a_column(RERUN[protocol], rows)
    if protocol == "paper":
        return _lead_of_the_paper([r for r in rows if r.variant == PUBLISHED])
    return _lead_of_ours([r for r in rows if r.variant == rows[-1].variant])


def column_gaps(column: str, rows: Sequence[Row]) -> dict[str, list[float]]:
    """Ours minus a published column in combined standard errors, set by set."""
    return {
        row.dataset: [
            gap_in_errors(row.ours[m], row.published[column][m]) for m in METRICS
        ]
        for row in rows
        if column in row.published
    }


def _lead_of_a_column(column: str, rows: Sequence[Row]) -> str:
    near = [
        abs(gap) <= CLOSE for own in column_gaps(column, rows).values() for gap in own
    ]
    return flow(f"""Paper: its column {column}; ours:
        {judged(f"{sum(near)} of {len(near)}")} means within {CLOSE:g} combined standard
        errors of it; that it is found again: {holds(near and all(near))}.""")


def _lead_of_the_paper(rows: Sequence[Row]) -> str:
    near = [abs(paired_z(gap)) < CLOSE for row in rows for gap in row.paired.values()]
    return flow(f"""Paper: its column for dropout, from the authors' logs; ours:
        {judged(f"{sum(near)} of {len(near)}")} means within {CLOSE:g} standard errors
        of it, paired by split; that it is found again: {holds(near and all(near))}.""")


def _lead_of_ours(rows: Sequence[Row]) -> str:
    paper = _no_worse(rows, "Dropout (paper)")
    ahead = sum(_all(row, "ll", ("win",)) for row in rows)
    level = sum(_all(row, "rmse", ("win", "tie")) for row in rows)
    return flow(f"""Paper: its column for dropout; ours ({rows[0].variant}):
        log-likelihood and RMSE no worse, by more than one combined standard error, on
        {judged(f"{paper} of {len(rows)}")} sets: {holds(paper == len(rows))}. Of every
        published row below, log-likelihood is ahead on
        {judged(f"{ahead} of {len(rows)}")} sets, and RMSE no worse on
        {judged(f"{level} of {len(rows)}")}.""")


def _no_worse(rows: Sequence[Row], opponent: str) -> int:
    """On how many sets neither metric is."""
    return sum(
        all(
            verdict(m, row.ours[m], row.published[opponent][m]) != "lose"
            for m in METRICS
        )
        for row in rows
        if opponent in row.published
    )


def _all(row: Row, metric: str, kinds: Sequence[str]) -> bool:
    """Whether no published row is otherwise."""
    return all(
        verdict(metric, row.ours[metric], own[metric]) in kinds
        for own in row.published.values()
        if metric in own
    )


def counted(rows: Sequence[Row], metric: str, opponent: str) -> str:
    """Wins, ties and losses, such as 7/2/0."""
    found = [
        verdict(metric, row.ours[metric], row.published[opponent][metric])
        for row in rows
        if metric in row.published.get(opponent, {})
    ]
    return judged("/".join(str(found.count(kind)) for kind in _KINDS))


def count(rows: Sequence[Row], metric: str) -> str:
    """Wins, ties and losses against everybody."""
    parts = [f"{name} {counted(rows, metric, name)}" for name in OPPONENTS]
    return f"{METRICS[metric]}, win/tie/lose against " + ", ".join(parts) + "."


def search_note(protocol: str, records: Sequence[Record]) -> Iterator[str]:
    """How the settings of ``best`` and ``flagship`` were chosen."""
    if protocol not in ("best", "flagship"):
        return
    if any(np.isnan(r.learning_rate) for r in records):
        protein = """, and that of protein with one layer was settled after a trial
            that had seen test rows"""
        yield flow(f"""These rows are of an earlier search, which did not choose
            everything by validation rows of the split at hand: the epochs of sets with
            more than 5,000 rows followed one rule{protein * (protocol == "best")}. The
            command searches epochs, rates and Adam's peak by each split's own folds
            now; a full run of it is not stored yet.""")
        return
    head = """, and the noise head's beta of 0.5, as its authors recommend (Seitzer et
        al. 2022); it was compared with 0 and 1 on validation rows of split 0 of power
        and protein alone, some of which are test rows of other splits"""
    yield flow(f"""Drop rates, that of the features, epochs and Adam's peak are chosen
        split by split on folds of its training rows (`papers/table1/climbing.py`), the
        scale of the precisions, too. Set beforehand are widths, batches, length-scale,
        the cosine and the ranges of the search{head * (protocol == "flagship")}.""")


def on_deep_ensembles(rows: Sequence[Row], records: Sequence[Record]) -> Iterator[str]:
    """What differs from them, and the wins if their ± are read otherwise."""
    other = as_standard_errors(rows, _ENSEMBLES)
    counts = ", ".join(
        f"{name} {counted(other, metric, _ENSEMBLES)}"
        for metric, name in METRICS.items()
    )
    first = records[0]
    layers = "one hidden layer" if first.hidden_layers == 1 else "two hidden layers"
    nets = "one network" if first.n_networks == 1 else f"{first.n_networks} networks"
    yield flow(f"""Deep Ensembles are not like for like: five networks with one hidden
        layer, a noise head and 40 epochs there; {nets} with {layers} and
        {span(records)} epochs here. If their ± are read as standard errors,
        win/tie/lose against them: {counts}.""")


def span(records: Sequence[Record]) -> str:
    """From the fewest to the most epochs."""
    epochs = sorted({r.epochs for r in records})
    return f"{epochs[0]}" if len(epochs) == 1 else f"{epochs[0]} to {epochs[-1]}"


def twins(records: Sequence[Record]) -> Iterator[str]:
    """The share of test rows that are training rows, too, and how they score."""
    told = []
    for name in dict.fromkeys(r.dataset for r in records):
        own = [r for r in records if r.dataset == name]
        share = _share_of_twins(name)
        if share < 0.01:
            continue
        words = f"{name} {100 * share:.0f} %"
        known = [r for r in own if np.isfinite(r.ll_twins)]  # a split may have none
        if known:
            inside = np.mean([r.ll_twins for r in known])
            outside = np.mean([r.ll_others for r in known])
            words += f" (log-likelihood {inside:.2f} on them, {outside:.2f} elsewhere)"
        told.append(words)
    if told:
        yield flow(f"""Test rows with a twin among the training rows, alike in all
            columns: {", ".join(told)}. All methods that use these splits have
            them.""")


@cache
def _share_of_twins(dataset: str) -> float:
    """Mean over all splits of a set."""
    splits = tuple(range(len(load_uci(dataset).splits)))
    rows = Job("", (), dataset, splits).rows()
    return float(np.mean([own.has_twin.mean() for own in rows]))


def not_compared(protocol: str) -> Iterator[str]:
    """What stands beside no column: numbers that nobody here could check."""
    if protocol in ("best", "flagship"):
        yield flow("""Not compared with: Hamiltonian Monte Carlo on such networks (Bui
            et al. 2016), whose table could not be had here to check its numbers.""")


def year() -> str:
    """What is said of the tenth row where it was not run."""
    found = {
        r.metric: r.mean
        for r in load_uci_published()
        if r.dataset == "year" and r.method == OPPONENTS["Dropout (paper)"][1]
    }
    return flow(f"""9 of 10 rows: YearPredictionMSD was not run, as its data were not
        obtainable here (`--sets year`). Published for dropout:
        {found["rmse"]:.3f} / {found["ll"]:.3f}.""")
