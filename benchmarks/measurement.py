"""Time one workload in all its variants, side by side."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.floors import deterministic_pass
from benchmarks.guard import Verdict
from benchmarks.naive import naive_moments
from benchmarks.ours import ask, cold_start
from benchmarks.timing import Timing, interleaved
from benchmarks.workloads import Workload

LASTING = 15.0
"""Seconds of repetitions at least: beside a busy process single calls vary a lot."""


@dataclass(frozen=True)
class Measurement:
    """Seconds of each variant at ``n_draws`` draws, and what follows from them."""

    workload: Workload
    verdict: Verdict
    n_draws: int
    naive_draws: int
    """Draws at which the naive loop was run; its time is scaled to ``n_draws``."""
    naive_pass: Timing
    ours: Timing
    one_pass: Timing
    floor: float
    cold_start: float

    @property
    def naive(self) -> float:
        """Seconds of the naive loop at ``n_draws``."""
        return self.naive_pass.median * self.n_draws

    @property
    def ratio(self) -> float:
        """How many times faster than the naive loop."""
        return self.naive / self.ours.median

    @property
    def passes(self) -> float:
        """How many deterministic passes all our draws cost."""
        return self.ours.median / self.one_pass.median

    @property
    def floor_ratio(self) -> float:
        """The ratio that the floor would reach."""
        return self.naive / self.floor

    @property
    def distance(self) -> float:
        """How many times slower than the floor."""
        return self.ours.median / self.floor

    @property
    def met(self) -> bool | None:
        """Whether the target is met; ``None`` if too few draws were made to judge."""
        if self.n_draws < self.workload.n_draws:
            return None
        target = self.workload.target
        return self.verdict.ok and target.is_met(ratio=self.ratio, passes=self.passes)

    def record(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        derived = ("naive", "ratio", "passes", "floor_ratio", "distance", "met")
        return {
            "workload": self.workload.name,
            "description": self.workload.description,
            "rows": self.workload.rows,
            "n_draws": self.n_draws,
            "naive_draws": self.naive_draws,
            "target": asdict(self.workload.target),
            "guard": {**asdict(self.verdict), "ok": self.verdict.ok},
            "naive_pass_seconds": self.naive_pass._asdict(),
            "ours_seconds": self.ours._asdict(),
            "one_pass_seconds": self.one_pass._asdict(),
            "floor_seconds": self.floor,
            "floor": self.workload.floor.description,
            "cold_start_seconds": self.cold_start,
            **{name: getattr(self, name) for name in derived},
        }


def measure(
    workload: Workload, verdict: Verdict, *, quick: bool, repetitions: int
) -> Measurement:
    """Time the naive loop, Caveat, one deterministic pass and the floor."""
    n_draws = workload.budget.quick if quick else workload.n_draws
    naive_draws = min(workload.budget.naive, n_draws)
    times = interleaved(
        _variants(workload, n_draws=n_draws, naive_draws=naive_draws),
        repetitions=repetitions,
        lasting=0.0 if quick else LASTING,
    )
    floor = times.get("floor", times["pass"])
    return Measurement(
        workload=workload,
        verdict=verdict,
        n_draws=n_draws,
        naive_draws=naive_draws,
        naive_pass=Timing(*(value / naive_draws for value in times["naive"])),
        ours=times["ours"],
        one_pass=times["pass"],
        floor=floor.median * workload.floor.repeats(n_draws),
        cold_start=cold_start(workload),
    )


def _variants(
    workload: Workload, *, n_draws: int, naive_draws: int
) -> dict[str, Callable[[], object]]:
    """Build each variant on a model of its own, so that none can spoil another."""
    case, switched_on = workload.make(), workload.make()
    workload.switch_on(switched_on.model)
    read = workload.task.read
    variants: dict[str, Callable[[], object]] = {
        "naive": lambda: naive_moments(switched_on, read, n_draws=naive_draws),
        "ours": lambda: ask(workload, case, n_draws),
        "pass": deterministic_pass(case),
    }
    floor = workload.floor.piece(workload.make())
    return variants if floor is None else {**variants, "floor": floor}
