"""Peak extra memory of the naive loop and of Caveat, each in a process of its own."""

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks import memory, options
from benchmarks.naive import dropout_modules_on, naive_moments
from benchmarks.results import Provenance, Report, console, store_markdown
from benchmarks.tasks import Case, Classification, Regression, whole
from benchmarks.workloads import Workload, select

MODULE = "benchmarks.bench_memory"
QUICK = ("W1", "W4")
NOTES = (
    "MB above what the process holds with libraries, model and inputs loaded, after a "
    "call of the same variant on a network of 18 weights; what that let go is handed "
    "back first. (Code that is paged in is no memory that anyone asked for.)",
    "The naive loop runs at the T in brackets, and needs no less at the full T.",
    "What the loop holds at W3 and W3b is mostly heap that the outputs it keeps hold "
    "open: with MALLOC_MMAP_THRESHOLD_=131072 set, which maps large pieces by "
    "themselves, it needs less there than ours.",
)


@dataclass(frozen=True)
class Footprint:
    """Extra bytes of both variants."""

    workload: Workload
    naive_draws: int
    n_draws: int
    naive: int
    ours: int


def main(argv: Sequence[str] | None = None) -> int:
    """Measure all workloads, each variant in a fresh interpreter."""
    given = sys.argv[1:] if argv is None else list(argv)
    if given[:1] == ["--child"]:
        return _child(given[1:])
    chosen = options.parse(options.parser(MODULE, __doc__ or ""), given)
    workloads = select(QUICK) if chosen.quick else chosen.workloads
    out = console()
    found = [
        _measure(workload, quick=chosen.quick, threads=chosen.threads)
        for workload in workloads
    ]
    report = _report(found)
    report.show(out)
    if chosen.folder is not None:
        provenance = Provenance.now(MODULE, given)
        store_markdown(chosen.folder / "memory.md", provenance, [report])
    return 0


def _measure(workload: Workload, *, quick: bool, threads: int) -> Footprint:
    n_draws = workload.budget.quick if quick else workload.n_draws
    naive_draws = min(workload.budget.memory, n_draws)
    return Footprint(
        workload,
        naive_draws=naive_draws,
        n_draws=n_draws,
        naive=_in_fresh_process(workload.name, "naive", naive_draws, threads),
        ours=_in_fresh_process(workload.name, "ours", n_draws, threads),
    )


def _in_fresh_process(name: str, variant: str, n_draws: int, threads: int) -> int:
    command = [sys.executable, "-m", MODULE, "--child"]
    arguments = [name, variant, str(n_draws), str(threads)]
    finished = subprocess.run(
        command + arguments, capture_output=True, text=True, check=False
    )
    if finished.returncode != 0:
        raise RuntimeError(f"{name} {variant} failed:\n{finished.stderr}")
    return int(finished.stdout.splitlines()[-1])


def _child(argv: Sequence[str]) -> int:
    found = argparse.ArgumentParser()
    found.add_argument("name")
    found.add_argument("variant", choices=["naive", "ours"])
    found.add_argument("n_draws", type=int)
    found.add_argument("threads", type=int)
    given = found.parse_args(argv)
    torch.set_num_threads(given.threads)
    (workload,) = (w for w in select([given.name]) if w.name == given.name)
    _small_call(given.variant)
    run = _variant(workload, given.variant, given.n_draws)
    memory.hand_back()
    memory.reset_peak()
    before = memory.peak()
    run()
    print(memory.peak() - before)
    return 0


def _small_call(variant: str) -> None:
    """Let the libraries page in their code, which is large, and no memory of a call."""
    from caveat import MCDropout

    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 2)).eval()
    case = Case(model, (torch.ones(4, 3),), {})
    if variant == "ours":
        for task in (Regression(), Classification()):
            task.ask(MCDropout(model, seed=0), case, 2)
    else:
        dropout_modules_on(model)
        naive_moments(case, whole, n_draws=2)


def _variant(workload: Workload, variant: str, n_draws: int) -> Callable[[], object]:
    from benchmarks.ours import ask  # both variants pay for the import beforehand

    case = workload.make()
    if variant == "ours":
        return lambda: ask(workload, case, n_draws)
    workload.switch_on(case.model)
    return lambda: naive_moments(case, workload.task.read, n_draws=n_draws)


def _report(found: Sequence[Footprint]) -> Report:
    return Report(
        title="Peak extra memory",
        columns=("workload", "T", "naive MB", "ours MB", "ours no higher"),
        rows=[_row(footprint) for footprint in found],
        notes=NOTES,
    )


def _row(found: Footprint) -> list[str]:
    return [
        found.workload.name,
        f"{found.n_draws} ({found.naive_draws})",
        f"{found.naive / 1e6:.0f}",
        f"{found.ours / 1e6:.0f}",
        "yes" if found.ours <= found.naive else "NO",
    ]


if __name__ == "__main__":
    raise SystemExit(main())
