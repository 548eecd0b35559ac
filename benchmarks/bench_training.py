"""Time per network-step of a fleet, beside the ordinary PyTorch training loop.

The net is 13-50-1 with dropout 0.05 on both weight layers, 448 rows, batch 32, Adam.
All run in turns in this process; a ratio compares the same turn, in which each variant
counts by the fastest of a few runs: a neighbour on the machine only ever adds time.
Fleets are trained by the compiled kernel, if there is one here, and by torch.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.results import FOLDER, Provenance, Report, console, store_markdown
from caveat.training import (
    Member,
    NetworkSpec,
    Rows,
    Schedule,
    kernel_status,
    train,
)

MODULE = "benchmarks.bench_training"
ROWS, INPUTS, WIDTH, RATE, BATCH = 448, 13, 50, 0.05, 32
FLEETS = (1, 20, 80, 240)
RUNS = 3  # of a variant in a turn
COMPILED, BY_TORCH = "fleet, compiled kernel", "fleet, torch"
GOALS = {COMPILED: 100.0, BY_TORCH: 40.0}
NOTES = (
    f"Microseconds per network-step: fastest of {RUNS} runs, medians of the turns.",
    "The ordinary loop: one net, DataLoader, nn.Sequential, torch.optim.Adam.",
    f"Goal at {FLEETS[-1]} networks: {GOALS[COMPILED]:.0f} times less than the "
    f"ordinary loop with the compiled kernel, {GOALS[BY_TORCH]:.0f} times without.",
)


@dataclass(frozen=True)
class Turn:
    """Seconds per network-step of each variant; of fleets, by road and size."""

    loop: float
    tensors: float
    fleets: dict[str, tuple[float, ...]]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns 1 if the goal is missed in a full run."""
    given = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument("--repetitions", type=int, default=5)
    chosen, _ = parser.parse_known_args(given)
    steps = 20 if chosen.quick else 600
    roads = _roads()
    turns = [
        _turn(steps, roads) for _ in range(2 if chosen.quick else chosen.repetitions)
    ]
    report = _report(turns)
    report.show(console())
    if not chosen.quick:
        provenance = Provenance.now(MODULE, given)
        store_markdown(FOLDER / "training.md", provenance, [report])
    missed = any(_ratio(turns, road, len(FLEETS) - 1) < GOALS[road] for road in roads)
    return int(missed and not chosen.quick)


def _roads() -> list[str]:
    """The ways of training that there are here; the kernel is built and checked."""
    if not kernel_status().is_compiled:
        return [BY_TORCH]
    _fleet(_rows(), COMPILED, 1, 1)
    return [COMPILED, BY_TORCH]


def _turn(steps: int, roads: Sequence[str]) -> Turn:
    rows = _rows()
    return Turn(
        loop=_timed(lambda: _ordinary(_batches(rows), steps), steps),
        tensors=_timed(lambda: _ordinary(_slices(rows), steps), steps),
        fleets={
            road: tuple(
                _timed_fleet(rows, road, size, _epochs(steps, size)) for size in FLEETS
            )
            for road in roads
        },
    )


def _timed_fleet(rows: Rows, road: str, size: int, epochs: int) -> float:
    network_steps = size * epochs * (ROWS // BATCH)
    return _timed(lambda: _fleet(rows, road, size, epochs), network_steps)


def _epochs(steps: int, size: int) -> int:
    """Fewer for large fleets, so that each variant takes about as long."""
    return max(1, 4 * steps // (ROWS // BATCH) // max(1, size // 20))


def _rows() -> Rows:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, INPUTS, generator=generator)
    return Rows(x, x[:, :1].sin())


def _timed(run: Callable[[], object], count: int) -> float:
    taken = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken) / count


def _batches(rows: Rows) -> DataLoader[tuple[torch.Tensor, ...]]:
    data = TensorDataset(rows.x, rows.y)
    return DataLoader(data, batch_size=BATCH, shuffle=True)


def _slices(rows: Rows) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return list(zip(rows.x.split(BATCH), rows.y.split(BATCH), strict=True))


def _ordinary(batches: object, steps: int) -> None:
    """What everyone writes."""
    net = nn.Sequential(
        nn.Dropout(RATE),
        nn.Linear(INPUTS, WIDTH),
        nn.ReLU(),
        nn.Dropout(RATE),
        nn.Linear(WIDTH, 1),
    )
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-6)
    loss = nn.MSELoss()
    done = 0
    while done < steps:
        for x, y in batches:  # type: ignore[attr-defined]
            optimiser.zero_grad()
            loss(net(x), y).backward()
            optimiser.step()
            done += 1


def _fleet(rows: Rows, road: str, size: int, epochs: int) -> None:
    spec = NetworkSpec(
        (WIDTH,),
        drop_rate=RATE,
        input_drop_rate=RATE,
        schedule=Schedule(epochs, BATCH, keep_last=True),
    )
    members = [Member(str(i), spec, (1e-6, 1e-6), seed=i) for i in range(size)]
    train(members, [rows], compiled=road == COMPILED)


def _ratio(turns: Sequence[Turn], road: str, fleet: int) -> float:
    return statistics.median(turn.loop / turn.fleets[road][fleet] for turn in turns)


def _absence() -> tuple[str, ...]:
    status = kernel_status()
    return () if status.is_compiled else (f"No compiled kernel: {status.reason}.",)


def _report(turns: Sequence[Turn]) -> Report:
    def micro(values: Sequence[float]) -> str:
        return f"{statistics.median(values) * 1e6:.1f}"

    loop = micro([turn.loop for turn in turns])
    plain = [turn.loop / turn.tensors for turn in turns]
    table = [
        ["ordinary loop", "1", loop, "1.0"],
        [
            "the same, batches as slices",
            "1",
            micro([turn.tensors for turn in turns]),
            f"{statistics.median(plain):.1f}",
        ],
    ]
    table += [
        [
            road,
            str(size),
            micro([turn.fleets[road][i] for turn in turns]),
            f"{_ratio(turns, road, i):.1f}",
        ]
        for road in turns[0].fleets
        for i, size in enumerate(FLEETS)
    ]
    return Report(
        title="Training, time per network-step",
        columns=("variant", "networks", "µs", "ratio"),
        rows=table,
        notes=(*NOTES, *_absence()),
    )


if __name__ == "__main__":
    raise SystemExit(main())
