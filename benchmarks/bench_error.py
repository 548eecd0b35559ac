"""Time to the Monte Carlo error that 100 plain draws have, against the naive loop."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from benchmarks import options
from benchmarks.fitting import trained
from benchmarks.naive import naive_moments
from benchmarks.options import Options
from benchmarks.results import (
    Provenance,
    Report,
    console,
    store_json,
    store_markdown,
)
from benchmarks.tasks import Case, Classification
from benchmarks.timing import interleaved
from benchmarks.workloads import Workload
from caveat import MCDropout

MODULE = "benchmarks.bench_error"
PLAIN = 100  # draws whose error is to be reached
CANDIDATES = (8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 100)
ROUND = 64  # draws, a whole block, whose worth is told
TARGETS = {"W2": 15.0, "W3": 6.0, "W3b": 20.0, "W4": 40.0, "W5": 4.0}
ROWS = 16  # on which errors are measured
# Steps of training, seeds and rows where the usual ones would take an hour: W5 has 256
# outputs a row, so that a few rows tell as much.
EFFORT = {"W5": (100, 12, 4)}
COLUMNS = (
    *("", "draws needed", f"{ROUND} are worth", "naive s", "ours s", "naive / ours"),
    *("at least", "met"),
)
NOTES = (
    "Trained weights. Draws needed: the fewest of a few numbers whose mean, over "
    f"seeds, is as close to the truth as that of {PLAIN} independent draws.",
    f"{ROUND} are worth: so many independent draws would be as close to it.",
    "naive: the loop of passes with dropout on, timed at fewer passes and scaled.",
    "The mean is that of outputs, for classifiers that of class probabilities.",
)


@dataclass(frozen=True)
class Found:
    """The figures of one workload."""

    name: str
    needed: int
    worth: float
    naive: float
    ours: float
    ratio: float
    at_least: float | None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    given = sys.argv[1:] if argv is None else list(argv)
    chosen = options.parse(options.parser(MODULE, __doc__ or ""), given)
    out = console()
    found = []
    for workload in chosen.workloads:
        out.print(f"[bold]{workload.name}[/] {workload.description}", highlight=False)
        found.append(_run(workload, chosen))
    report = Report(
        title=f"As close to the truth as {PLAIN} plain draws",
        columns=COLUMNS,
        rows=[_row(one) for one in found],
        notes=NOTES,
    )
    report.show(out)
    if chosen.folder is not None:
        provenance = Provenance.now(MODULE, given)
        store_markdown(chosen.folder / "error.md", provenance, [report])
        store_json(
            chosen.folder / "error.json",
            provenance,
            repetitions=chosen.repetitions,
            workloads=[asdict(one) for one in found],
        )
    return 0


def _run(workload: Workload, chosen: Options) -> Found:
    steps, n_seeds, rows = EFFORT.get(workload.name, (300, 40, ROWS))
    if chosen.quick:
        steps, n_seeds = 3, 3
    case = trained(workload, steps=steps)
    n_needed, worth = needed(workload, _few(case, rows), n_seeds=n_seeds)
    n_naive = 2 if chosen.quick else min(workload.budget.naive, PLAIN)
    if chosen.quick:
        case = _few(case)

    def naive() -> None:
        workload.switch_on(case.model)
        naive_moments(case, workload.task.read, n_draws=n_naive)
        case.model.eval()

    times = interleaved(
        {"naive": naive, "ours": lambda: mean(workload, case, n_needed, 0)},
        repetitions=chosen.repetitions,
    )
    slow, fast = times["naive"].median * PLAIN / n_naive, times["ours"].median
    least = TARGETS.get(workload.name)
    return Found(workload.name, n_needed, worth, slow, fast, slow / fast, least)


def needed(workload: Workload, case: Case, *, n_seeds: int) -> tuple[int, float]:
    """The fewest draws with at most the squared error of ``PLAIN`` independent ones.

    And how many independent ones ``ROUND`` are worth.
    """
    plain = MCDropout(case.model, seed=-1, stratified=False)
    draws = plain.draws(*case.args, n_draws=8 * n_seeds, progress=False, **case.kwargs)
    values = _values(workload, draws)
    allowed = float(values.var(0).sum()) / PLAIN
    # Each seed's mean of many draws, then the mean of those, is the truth.
    truth = torch.stack(
        [mean(workload, case, 256, 1000 + s) for s in range(n_seeds)]
    ).mean(0)

    def squared_error(n_draws: int) -> float:
        found = [mean(workload, case, n_draws, seed) for seed in range(n_seeds)]
        return float((torch.stack(found) - truth).square().mean(0).sum())

    worth = PLAIN * allowed / max(squared_error(ROUND), 1e-30)
    fewest = next((n for n in CANDIDATES if squared_error(n) <= allowed), PLAIN)
    return fewest, worth


def mean(workload: Workload, case: Case, n_draws: int, seed: int) -> Tensor:
    """What a user asks for: outputs, or class probabilities."""
    mc = MCDropout(case.model, seed=seed)
    if isinstance(workload.task, Classification):
        found = mc.classify(*case.args, n_draws=n_draws, progress=False, **case.kwargs)
        return found.probs
    return workload.task.ask(mc, case, n_draws).mean


def _values(workload: Workload, draws: object) -> Tensor:
    found = workload.task.read(draws)
    return found.softmax(-1) if isinstance(workload.task, Classification) else found


def _few(case: Case, rows: int = ROWS) -> Case:
    args = tuple(a[:rows] for a in case.args)
    return Case(case.model, args, {k: v[:rows] for k, v in case.kwargs.items()})


def _row(found: Found) -> list[str]:
    least = found.at_least
    return [
        found.name,
        str(found.needed),
        f"{found.worth:.0f}" if found.worth < 1e6 else "exact",
        f"{found.naive:.3f}",
        f"{found.ours:.4f}",
        f"{found.ratio:.2f}",
        "-" if least is None else f"{least:g}",
        "-" if least is None else ("yes" if found.ratio >= least else "NO"),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
