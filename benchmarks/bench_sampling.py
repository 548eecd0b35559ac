"""Caveat against the naive loop, one deterministic pass and the floor, in time."""

import sys
from collections.abc import Sequence

from rich.console import Console

from benchmarks import options
from benchmarks.guard import check
from benchmarks.measurement import Measurement, measure
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
    "Medians of interleaved repetitions in one process, the same threads for all.",
    "naive: the loop of T passes, timed at the T in brackets and scaled.",
    "cold: the first call on a model never seen before, two draws only.",
    "right: mean and variance of a few outputs within 5 standard errors of the loop's.",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if a workload's draws were not right."""
    given = sys.argv[1:] if argv is None else list(argv)
    chosen = options.parse(options.parser(MODULE, __doc__ or ""), given)
    out = console()
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
