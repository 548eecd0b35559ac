"""World-steps a second of ``caveat/Eyes-v0``, one world and many at once.

Random moves. A process per core steps its own worlds for a fixed time, all of them
between the same two moments; what counts is the total.
"""

import argparse
import multiprocessing
import statistics
import sys
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier as BarrierType
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import caveat.rl  # noqa: F401  (registers the environment)
from benchmarks.results import FOLDER, Provenance, Report, console, store_markdown

MODULE = "benchmarks.bench_eyes"
SIZES = (1, 10, 100, 1_000)
PROCESSES = 2
GOAL = 20_000
NOTES = (
    f"World-steps a second in total, {PROCESSES} processes of so many worlds each, "
    "observations and rewards included; medians of the repetitions.",
    "1 world: gymnasium.make; more: gymnasium.make_vec.",
    f"Goal: at least {GOAL:,} with the largest number of worlds.",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns 1 if the goal is missed in a full run."""
    given = sys.argv[1:] if argv is None else list(argv)
    chosen, _ = _options().parse_known_args(given)
    sizes, seconds = (SIZES[:2], 0.2) if chosen.quick else (SIZES, 3.0)
    repetitions = 1 if chosen.quick else chosen.repetitions
    rates = _rates(sizes, seconds, repetitions)
    report = _report(rates)
    report.show(console())
    folder = chosen.output or (None if chosen.quick else FOLDER)
    if folder is not None:
        provenance = Provenance.now(MODULE, given)
        store_markdown(folder / "eyes.md", provenance, [report])
    return int(not chosen.quick and rates[SIZES[-1]] < GOAL)


def _options() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(f"python -m {MODULE}", description=__doc__)
    found.add_argument("--quick", action="store_true", help="a smoke test")
    found.add_argument("--repetitions", type=int, default=3, help="median of so many")
    found.add_argument("--output", type=Path, help="folder for the results")
    return found


def _rates(sizes: Sequence[int], seconds: float, repetitions: int) -> dict[int, float]:
    """World-steps a second of all processes together, medians."""
    context = multiprocessing.get_context("spawn")
    start, answers = context.Barrier(PROCESSES), context.Queue()
    turns = [n for _ in range(repetitions) for n in sizes]
    job = (turns, seconds, start, answers)
    processes = [context.Process(target=_work, args=job) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    found = [answers.get() for _ in processes]  # shape: (processes, turns)
    for process in processes:
        process.join()
    totals = [sum(rates) for rates in zip(*found, strict=True)]
    return {n: statistics.median(totals[k :: len(sizes)]) for k, n in enumerate(sizes)}


def _work(
    turns: Sequence[int], seconds: float, start: BarrierType, answers: Any
) -> None:
    answers.put([_rate(n_worlds, seconds, start) for n_worlds in turns])


def _rate(n_worlds: int, seconds: float, start: BarrierType) -> float:
    """World-steps a second of this process, from the moment when all are ready."""
    ticks = _single() if n_worlds == 1 else _vectorised(n_worlds)
    next(ticks)
    start.wait()
    began, count = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < seconds:
        next(ticks)
        count += n_worlds
    return count / elapsed


def _single() -> Any:
    env = gymnasium.make("caveat/Eyes-v0")
    env.reset(seed=0)
    for actions in _actions(1):
        yield env.step(actions[0])


def _vectorised(n_worlds: int) -> Any:
    worlds = gymnasium.make_vec("caveat/Eyes-v0", num_envs=n_worlds)
    worlds.reset(seed=0)
    for actions in _actions(n_worlds):
        yield worlds.step(actions)


def _actions(n_worlds: int) -> Any:
    moves = np.random.default_rng(0).integers(0, 5, (1_000, n_worlds))
    while True:
        yield from moves


def _report(rates: dict[int, float]) -> Report:
    return Report(
        title="World-steps a second",
        columns=("worlds per process", "in total"),
        rows=[[f"{n:,}", f"{rate:,.0f}"] for n, rate in rates.items()],
        notes=NOTES,
    )


if __name__ == "__main__":
    raise SystemExit(main())
