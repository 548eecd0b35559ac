"""Caveat against the naive loop, one deterministic pass and the floor, in time.

With ``--neighbour`` the ratio to the loop is measured twice, alone and beside another
busy process.
"""

import sys
from collections.abc import Sequence

from rich.console import Console

from benchmarks import options
from benchmarks.guard import check
from benchmarks.measurement import LASTING, Measurement, measure
from benchmarks.neighbour import busy_neighbour
from benchmarks.options import Options
from benchmarks.results import (
    Provenance,
    Report,
    console,
    store_json,
    store_markdown,
)
from benchmarks.workloads import Workload

MODULE = "benchmarks.bench_sampling"
COLUMNS = (
    "",
    "T (naive at)",
    "naive s",
    "ours s",
    "one pass ms",
    "naive / ours",
    "at least",
    "ours / pass",
    "at most",
    "floor s",
    "ours / floor",
    "cold ms",
    "right",
    "met",
)
NOTES = (
    "Medians of interleaved repetitions in one process, the same threads for all; "
    f"of short calls as many as {LASTING:g} s hold.",
    "naive: the loop of T passes, timed at the T in brackets and scaled.",
    "cold: the first call on a model never seen before, two draws only.",
    "right: mean and variance of a few outputs within 5 standard errors of the loop's.",
)
KEPT = 0.7
"""The share of the quiet ratio that must be left beside a busy process."""
NEIGHBOUR_COLUMNS = ("", "quiet", "with a neighbour", "quotient", "at least", "met")
NEIGHBOUR_NOTES = (
    "naive / ours, alone and beside a process that multiplies matrices on one thread.",
    "Medians of interleaved repetitions in one process, the same threads for all; "
    f"of short calls as many as {LASTING:g} s hold.",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if a workload's draws were not right."""
    given = sys.argv[1:] if argv is None else list(argv)
    parser = options.parser(MODULE, __doc__ or "")
    parser.add_argument(
        "--neighbour", action="store_true", help="alone, and beside a busy process"
    )
    neighbour = parser.parse_args(given).neighbour
    chosen = options.parse(parser, given)
    out = console()
    if neighbour:
        return _beside_a_neighbour(chosen, given, out)
    found = [_run(workload, chosen, out) for workload in chosen.workloads]
    report = _report(found)
    report.show(out)
    if chosen.folder is not None:
        provenance = Provenance.now(MODULE, given)
        store_markdown(chosen.folder / "sampling.md", provenance, [report])
        store_json(
            chosen.folder / "sampling.json",
            provenance,
            repetitions=chosen.repetitions,
            workloads=[measurement.record() for measurement in found],
        )
    return 0 if all(measurement.verdict.ok for measurement in found) else 1


def _run(workload: Workload, chosen: Options, out: Console) -> Measurement:
    out.print(f"[bold]{workload.name}[/] {workload.description}", highlight=False)
    verdict = check(workload, n_draws=50 if chosen.quick else 200)
    out.print(f"   draws as the naive loop does: {verdict}", highlight=False)
    found = measure(
        workload, verdict, quick=chosen.quick, repetitions=chosen.repetitions
    )
    out.print(f"   {found.ratio:.2f} times faster", highlight=False)
    return found


def _beside_a_neighbour(chosen: Options, given: Sequence[str], out: Console) -> int:
    quiet = [_run(workload, chosen, out) for workload in chosen.workloads]
    out.print("[bold]with a busy process beside it[/]")
    with busy_neighbour():
        busy = [_run(workload, chosen, out) for workload in chosen.workloads]
    pairs = list(zip(quiet, busy, strict=True))
    report = _neighbour_report(pairs)
    report.show(out)
    if chosen.folder is not None:
        provenance = Provenance.now(MODULE, given)
        store_markdown(chosen.folder / "neighbour.md", provenance, [report])
        store_json(
            chosen.folder / "neighbour.json",
            provenance,
            repetitions=chosen.repetitions,
            quiet=[measurement.record() for measurement in quiet],
            busy=[measurement.record() for measurement in busy],
        )
    return 0 if all(m.verdict.ok for m in (*quiet, *busy)) else 1


def _neighbour_report(pairs: Sequence[tuple[Measurement, Measurement]]) -> Report:
    rows = []
    for quiet, busy in pairs:
        quotient = busy.ratio / quiet.ratio
        met = "-" if quiet.met is None else "yes" if quotient >= KEPT else "NO"
        ratios = (f"{value:.2f}" for value in (quiet.ratio, busy.ratio, quotient))
        rows.append([quiet.workload.name, *ratios, f"{KEPT:g}", met])
    return Report(
        title="The naive loop against Caveat, beside a busy process",
        columns=NEIGHBOUR_COLUMNS,
        rows=rows,
        notes=NEIGHBOUR_NOTES,
    )


def _report(found: Sequence[Measurement]) -> Report:
    floors = [
        f"floor {m.workload.name}: {m.workload.floor.description}, "
        f"naive / floor {m.floor_ratio:.2f}"
        for m in found
    ]
    return Report(
        title="T draws: the naive loop against Caveat",
        columns=COLUMNS,
        rows=[_row(measurement) for measurement in found],
        notes=[*NOTES, *floors],
    )


def _row(found: Measurement) -> list[str]:
    target = found.workload.target
    return [
        found.workload.name,
        f"{found.n_draws} ({found.naive_draws})",
        f"{found.naive:.2f}",
        f"{found.ours.median:.3f}",
        f"{found.one_pass.median * 1e3:.2f}",
        f"{found.ratio:.2f}",
        f"{target.ratio:g}",
        f"{found.passes:.2f}",
        "-" if target.passes is None else f"{target.passes:g}",
        f"{found.floor:.3f}",
        f"{found.distance:.2f}",
        f"{found.cold_start * 1e3:.0f}",
        found.verdict.word,
        {True: "yes", False: "NO", None: "-"}[found.met],
    ]


if __name__ == "__main__":
    raise SystemExit(main())
