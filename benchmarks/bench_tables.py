"""The defaults on tables of data, beside what people would use otherwise.

Every set has three random splits; each result is stored as soon as it is there, so a
run that was stopped goes on. Sets are in two halves: everything about the defaults was
chosen on the first, and the second is shown beside it.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.results import (
    FOLDER,
    Provenance,
    Report,
    console,
    store_json,
    store_markdown,
)
from benchmarks.table_models import OURS, PACKAGES, missing, models_for, scores_of
from benchmarks.table_sets import N_SPLITS, TableSet, chosen

MODULE = "benchmarks.bench_tables"
ROWS = "tables_rows.json"
HALVES = ("develop", "final")
QUICK = ["iris", "state crime"]
MARGIN = 0.02  # nats
COVERAGE = (0.85, 0.95)
MANY_ROWS = 200
LARGE, SECONDS = "20,000 rows", 25  # the set that is timed
ORDER = (
    *("constant", "linear", "Gaussian process", "MLP", "random forest", "HistGB"),
    *("NGBoost", OURS),
)
Found = dict[str, dict[str, float]]  # by "set | split | model"


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is missing, then show all; return 1 if a full run misses a target."""
    given = sys.argv[1:] if argv is None else list(argv)
    options = _options().parse_args(given)
    torch.set_num_threads(options.threads)
    part = options.quick or options.only or options.half
    folder = options.output or (None if part else FOLDER)
    out = console()
    for name in missing():
        out.print(
            f"{name} is not installed and left out (pip install {PACKAGES[name]})"
        )
    sets = chosen(
        ["iris", "state crime"] if options.quick else options.only, options.half
    )
    splits = range(1 if options.quick else N_SPLITS)
    with threadpool_limits(options.threads):
        found = _run(sets, splits, folder, options, out)
    if options.models:
        return 0
    tables = [(half, _of(sets, half)) for half in HALVES]
    reports = [_report(half, own, found) for half, own in tables if own]
    reports.append(_summary(sets, found))
    for report in reports:
        report.show(out)
    if folder is not None:
        provenance = Provenance.now(MODULE, given)
        store_markdown(folder / "tables.md", provenance, reports)
        store_json(folder / "tables.json", provenance, means=_means(sets, found))
        _picture(sets, found, folder / "tables.png")
    return int(not part and not all(_met(sets, found).values()))


def _options() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(f"python -m {MODULE}", description=__doc__)
    found.add_argument("--quick", action="store_true", help="two small sets, one split")
    found.add_argument("--threads", type=int, default=2, help="threads of torch, BLAS")
    found.add_argument("--only", nargs="+", metavar="SET", help="these sets only")
    found.add_argument("--half", choices=HALVES, help="one half of the sets only")
    found.add_argument(
        "--again", nargs="+", default=[], metavar="MODEL", help="run these anew"
    )
    found.add_argument("--models", nargs="+", help="run these only; show nothing")
    found.add_argument("--output", type=Path, help="folder for the results")
    found.add_argument("--repetitions", type=int, help=argparse.SUPPRESS)
    return found


# Running


def _run(
    sets: Sequence[TableSet],
    splits: Sequence[int],
    folder: Path | None,
    options: argparse.Namespace,
    out: Any,
) -> Found:
    path = None if folder is None else folder / ROWS
    found: Found = {}
    if path is not None and path.exists():
        found = json.loads(path.read_text())
    found = {k: v for k, v in found.items() if k.split(" | ")[2] not in options.again}
    for table in sets:
        for split in splits:
            rows = table.split(split)
            for name, model in models_for(table.is_regression, len(rows[0])).items():
                key = f"{table.name} | {split} | {name}"
                if key in found or (options.models and name not in options.models):
                    continue
                found[key] = scores_of(model, *rows)
                out.print(f"{key}: {_told(found[key])}", highlight=False)
                if path is not None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(json.dumps(found, indent=1) + "\n")
    return found


def _told(scores: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in scores.items())


# Reading


def _of(sets: Sequence[TableSet], half: str) -> list[TableSet]:
    return [s for s in sets if s.half == half]


def _means(sets: Sequence[TableSet], found: Found) -> dict[str, Found]:
    """By set, model and score: the mean over splits."""
    means: dict[str, Found] = {}
    for table in sets:
        own: dict[str, list[dict[str, float]]] = {}
        for key, scores in found.items():
            name, _, model = key.split(" | ")
            if name == table.name:
                own.setdefault(model, []).append(scores)
        means[table.name] = {
            model: {n: fmean(s[n] for s in each) for n in each[0]}
            for model, each in own.items()
        }
    return means


def _ranks(sets: Sequence[TableSet], found: Found) -> tuple[list[str], Any]:
    """Models, and their ranks by log-likelihood (sets, models); NaN where absent."""
    means = _means(sets, found)
    models = [
        m
        for m in ORDER
        if any("log_likelihood" in own.get(m, {}) for own in means.values())
    ]
    values = np.array(
        [
            [means[s.name].get(m, {}).get("log_likelihood", np.nan) for m in models]
            for s in sets
        ]
    )
    better = (values[:, None, :] > values[:, :, None]).sum(
        2
    )  # comparisons with NaN fail
    return models, np.where(np.isnan(values), np.nan, 1.0 + better)


def _met(sets: Sequence[TableSet], found: Found) -> dict[str, bool]:
    """What was wanted of the defaults, and whether it holds."""
    means = _means(sets, found)
    models, ranks = _ranks(sets, found)
    average = dict(zip(models, np.nanmean(ranks, 0).tolist(), strict=True))
    ours = average.pop(OURS)
    gaps = {name: _gap(own) for name, own in means.items()}
    worst = min(gaps, key=lambda name: gaps[name])
    outside = _outside(sets, means)
    low, high = COVERAGE
    held = {
        f"best mean rank: {ours:.2f}, next {min(average.values()):.2f}": ours
        < min(average.values()),
        f"at most {MARGIN} nats worse than the better of constant and linear: least "
        f"gain {gaps[worst]:+.3f} ({worst})": gaps[worst] >= -MARGIN,
        f"90 % intervals hold {low:.0%} to {high:.0%} on all but one set of "
        f"{MANY_ROWS} rows or more; outside: {', '.join(outside) or 'none'}": len(
            outside
        )
        <= 1,
    }
    if LARGE in means:
        seconds = means[LARGE][OURS]["seconds"]
        held[f"{LARGE} in at most {SECONDS} s: {seconds:.1f}"] = seconds <= SECONDS
    return held


def _gap(own: Found) -> float:
    """Nats by which ours is better than the better of constant and linear."""
    simple = max(own["constant"]["log_likelihood"], own["linear"]["log_likelihood"])
    return own[OURS]["log_likelihood"] - simple


def _outside(sets: Sequence[TableSet], means: dict[str, Found]) -> list[str]:
    low, high = COVERAGE
    return [
        f"{s.name} {cover:.3f}"
        for s in sets
        if s.is_regression and len(s.make()[0]) >= MANY_ROWS
        for cover in [means[s.name][OURS]["coverage"]]
        if not low <= cover <= high
    ]


def _report(half: str, sets: Sequence[TableSet], found: Found) -> Report:
    means = _means(sets, found)
    models, ranks = _ranks(sets, found)
    rows = [_row(s, means[s.name], models) for s in sets]
    average = [f"{r:.2f}" for r in np.nanmean(ranks, 0)]
    rows.append(["mean rank", "", *average, "", "", "", ""])
    return Report(
        title=f"Half: {half}. Mean test log-likelihood",
        columns=("", "rows", *models, "error, HistGB", "coverage", "width", "seconds"),
        rows=rows,
        notes=(
            "error: ours / HistGB; RMSE, or the share of wrong labels.",
            "coverage, width: of our 90 % intervals; the width over that of MAPIE or, "
            "without it, of HistGB's Gaussian.",
            "seconds: of our fit and all predictions.",
        ),
    )


def _row(table: TableSet, own: Found, models: Sequence[str]) -> list[str]:
    ours, trees = own[OURS], own["HistGB"]
    beside = own.get("MAPIE", trees)
    logs = [own[m]["log_likelihood"] if m in own else None for m in models]
    is_regression = table.is_regression
    return [
        table.name,
        str(len(table.make()[0])),
        *("-" if v is None else f"{v:.3f}" for v in logs),
        f"{ours['error']:.3g} / {trees['error']:.3g}",
        f"{ours['coverage']:.3f}" if is_regression else "-",
        f"{ours['width'] / beside['width']:.2f}" if is_regression else "-",
        f"{ours['seconds']:.1f}",
    ]


def _summary(sets: Sequence[TableSet], found: Found) -> Report:
    parts = [("all", list(sets)), *((h, _of(sets, h)) for h in HALVES)]
    rows = [
        [half, wanted, "yes" if holds else "NO"]
        for half, own in parts
        if own
        for wanted, holds in _met(own, found).items()
    ]
    return Report("What was wanted", ("half", "wanted", "met"), rows)


def _picture(sets: Sequence[TableSet], found: Found, path: Path) -> None:
    """A heat map of ranks, the halves one under the other."""
    from matplotlib.figure import Figure

    ordered = [s for half in HALVES for s in _of(sets, half)]
    models, ranks = _ranks(ordered, found)
    average: NDArray[np.float64] = np.nanmean(ranks, 0)
    figure = Figure(figsize=(8, 1.5 + 0.26 * len(ordered)), layout="constrained")
    axes = figure.subplots()
    axes.imshow(ranks, cmap="YlGnBu_r", aspect="auto", vmin=1, vmax=len(models))
    for (row, column), rank in np.ndenumerate(ranks):
        text = "" if np.isnan(rank) else f"{rank:.0f}"
        colour = "white" if rank <= len(models) / 2 else "black"
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
    axes.set_xticks(
        range(len(models)),
        [f"{m}\n{a:.2f}" for m, a in zip(models, average, strict=True)],
        fontsize=8,
    )
    axes.set_yticks(range(len(ordered)), [s.name for s in ordered], fontsize=8)
    axes.xaxis.tick_top()
    axes.axhline(len(_of(ordered, HALVES[0])) - 0.5, color="black", linewidth=2)
    axes.set_ylabel("final half  |  half for development", fontsize=9)
    axes.set_title("Ranks by test log-likelihood (1 is best); mean ranks on top")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    raise SystemExit(main())
