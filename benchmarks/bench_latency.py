"""One row and 16 rows, 100 draws, not the first call: Caveat against the naive loop.

Every call has other values in inputs of the same shapes, so nothing can be remembered
by value. The sampler is made once, as in a server.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

from benchmarks import latency_cases, options
from benchmarks.bench_predict import fitted
from benchmarks.floors import deterministic_pass
from benchmarks.guard import REFERENCE, Verdict, check, compare
from benchmarks.latency_cases import N_DRAWS, LatencyCase
from benchmarks.naive import dropout_modules_on, naive_draws, naive_moments
from benchmarks.results import (
    FOLDER,
    Provenance,
    Report,
    console,
    store_json,
    store_markdown,
)
from benchmarks.tasks import Case, Moments
from benchmarks.timing import Clock, Timing, interleaved
from benchmarks.workloads import Target
from caveat import MCDropout

MODULE = "benchmarks.bench_latency"
QUICK_DRAWS = 10
ESTIMATOR = "DropoutRegressor"
LIMIT = 3.0
"""At most this many times ``MCDropout.regress`` on its network."""
COLUMNS = (
    "",
    "rows",
    "naive ms",
    "ours ms",
    "one pass ms",
    "naive / ours",
    "at least",
    "ours / pass",
    "at most",
    "right",
    "met",
)
NOTES = (
    f"{N_DRAWS} draws, second and later calls, other values in each; default settings.",
    "Medians of interleaved repetitions in one process, the same threads for all.",
    "ours: mean and variance, or probabilities, entropy and mutual information.",
    "right: mean and variance of a few outputs within 5 standard errors of the loop's.",
    f"{ESTIMATOR}: predict of one row; ours / pass is over MCDropout.regress on its "
    f"network, which stands in the column of one pass.",
)


@dataclass(frozen=True)
class Latency:
    """Seconds per call of one case, and what follows from them."""

    name: str
    rows: int
    target: Target
    verdict: Verdict
    naive: Timing
    ours: Timing
    one_pass: Timing
    judged: bool
    """Too few draws were made in a smoke run."""

    @property
    def ratio(self) -> float:
        """How many times faster than the naive loop."""
        return self.naive.median / self.ours.median

    @property
    def passes(self) -> float:
        """How many deterministic passes all our draws cost."""
        return self.ours.median / self.one_pass.median

    @property
    def met(self) -> bool | None:
        """Whether the target is met; ``None`` if it was not judged."""
        if not self.judged:
            return None
        return self.verdict.ok and self.target.is_met(
            ratio=self.ratio, passes=self.passes
        )

    def record(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {
            "case": self.name,
            "rows": self.rows,
            "n_draws": N_DRAWS,
            "target": asdict(self.target),
            "guard": {**asdict(self.verdict), "ok": self.verdict.ok},
            "naive_seconds": self.naive._asdict(),
            "ours_seconds": self.ours._asdict(),
            "one_pass_seconds": self.one_pass._asdict(),
            "ratio": self.ratio,
            "passes": self.passes,
            "met": self.met,
        }


@dataclass(frozen=True)
class How:
    """How cases are measured."""

    quick: bool
    repetitions: int
    clock: Clock

    @property
    def n_draws(self) -> int:
        """Draws of every call."""
        return QUICK_DRAWS if self.quick else N_DRAWS

    @property
    def checked_draws(self) -> int:
        """Draws in the comparison with the loop; fewer would not see rare drops."""
        return 200

    def time(self, variants: dict[str, Callable[[], object]]) -> dict[str, Timing]:
        """Time variants side by side."""
        return interleaved(variants, repetitions=self.repetitions, clock=self.clock)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if the draws of a case were not right."""
    given = sys.argv[1:] if argv is None else list(argv)
    parser = options.parser(MODULE, __doc__ or "")
    parser.add_argument("--cpu", action="store_true", help="CPU time, not wall time")
    chosen, _ = parser.parse_known_args(given)
    torch.set_num_threads(chosen.threads)
    how = How(
        quick=chosen.quick,
        repetitions=1 if chosen.quick else chosen.repetitions,
        clock=time.process_time if chosen.cpu else time.perf_counter,
    )
    out = console()
    found = [
        _said(measured(case, rows, how), out)
        for case in latency_cases.select(chosen.only)
        for rows in case.targets
    ]
    if not chosen.only or ESTIMATOR in chosen.only:
        found.append(_said(estimator(how), out))
    report = _report(found, cpu=chosen.cpu)
    report.show(out)
    folder = chosen.output or (None if chosen.quick or chosen.only else FOLDER)
    if folder is not None:
        provenance = Provenance.now(MODULE, given)
        store_markdown(folder / "latency.md", provenance, [report])
        store_json(
            folder / "latency.json",
            provenance,
            repetitions=how.repetitions,
            cases=[latency.record() for latency in found],
        )
    return 0 if all(latency.verdict.ok for latency in found) else 1


def measured(case: LatencyCase, rows: int, how: How) -> Latency:
    """Time a case side by side with the loop and one pass, after checking its draws."""
    verdict = check(case.workload(rows), n_draws=how.checked_draws)
    naive_draws = min(case.naive_draws, how.n_draws)
    times = how.time(_variants(case, rows, how.n_draws, naive_draws))
    scale = how.n_draws / naive_draws
    return Latency(
        name=case.name,
        rows=rows,
        target=case.targets[rows],
        verdict=verdict,
        naive=Timing(*(value * scale for value in times["naive"])),
        ours=times["ours"],
        one_pass=times["pass"],
        judged=not how.quick,
    )


def _variants(
    case: LatencyCase, rows: int, n_draws: int, naive_draws: int
) -> dict[str, Callable[[], object]]:
    """Build each variant on a model of its own, with a stream of inputs of its own."""
    switched_on, asked, plain = case.model(), case.model(), case.model()
    case.switch_on(switched_on)
    sampler = MCDropout(asked, seed=0)
    streams = [case.stream(model, rows) for model in (switched_on, asked, plain)]
    read = case.task.read
    return {
        "naive": lambda: naive_moments(next(streams[0]), read, n_draws=naive_draws),
        "ours": lambda: case.task.predict(sampler, next(streams[1]), n_draws),
        "pass": lambda: deterministic_pass(next(streams[2]))(),
    }


def estimator(how: How) -> Latency:
    """``DropoutRegressor.predict`` of one row, over MCDropout on its network."""
    model = fitted("bernoulli", n_draws=how.n_draws)
    rng = np.random.default_rng(0)
    rows = iter(rng.normal(size=(1_000_000, 1, model.n_features_in_)))
    net = model.networks_[0].double()
    sampler = MCDropout(net, seed=0)
    switched_on = fitted("bernoulli", n_draws=how.n_draws).networks_[0].double()
    dropout_modules_on(switched_on)

    def case(network: Any) -> Case:
        return Case(network, (torch.from_numpy(next(rows)),), {})

    regress = partial(sampler.regress, n_draws=how.n_draws, precision=1.0)
    times = how.time(
        {
            "naive": lambda: naive_moments(
                case(switched_on), Tensor.double, n_draws=how.n_draws
            ),
            "ours": lambda: model.predict(next(rows)),
            "pass": lambda: regress(*case(net).args),
        }
    )
    return Latency(
        name=ESTIMATOR,
        rows=1,
        target=Target(1.0, passes=LIMIT),
        verdict=_estimator_verdict(how.checked_draws),
        naive=times["naive"],
        ours=times["ours"],
        one_pass=times["pass"],
        judged=not how.quick,
    )


def _estimator_verdict(n_draws: int) -> Verdict:
    """Compare the predictive distribution of a row with draws of the network."""
    model = fitted("bernoulli", n_draws=n_draws)
    row = np.full((1, model.n_features_in_), 0.5)
    found = model.predictive(row)
    ours = Moments(
        found.mean.double().view(1, 1), found.epistemic_variance.double().view(1, 1)
    )
    net, scaling = model.networks_[0].double(), model.scaling_
    dropout_modules_on(net)
    scaled = torch.from_numpy((row - scaling.x_mean) / scaling.x_std)
    case = Case(net, (scaled,), {})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        draws = naive_draws(case, Tensor.double, n_draws=REFERENCE * n_draws)
    draws = draws * float(scaling.y_std[0]) + float(scaling.y_mean[0])
    return compare(ours, draws.view(-1, 1, 1), n_draws=n_draws)


def _said(found: Latency, out: Console) -> Latency:
    out.print(
        f"[bold]{found.name}[/] {found.rows} row(s): {found.verdict}, "
        f"{found.ratio:.2f} times the loop",
        highlight=False,
    )
    return found


def _report(found: Sequence[Latency], *, cpu: bool) -> Report:
    clock = ("CPU time of the process.",) if cpu else ()
    return Report(
        title="Few rows: the naive loop against Caveat",
        columns=COLUMNS,
        rows=[_row(latency) for latency in found],
        notes=[*NOTES, *clock],
    )


def _row(found: Latency) -> list[str]:
    limit = found.target.passes
    return [
        found.name,
        f"{found.rows}",
        f"{found.naive.median * 1e3:.2f}",
        f"{found.ours.median * 1e3:.2f}",
        f"{found.one_pass.median * 1e3:.3f}",
        f"{found.ratio:.2f}",
        f"{found.target.ratio:g}",
        f"{found.passes:.2f}",
        "-" if limit is None else f"{limit:g}",
        found.verdict.word,
        {True: "yes", False: "NO", None: "-"}[found.met],
    ]


if __name__ == "__main__":
    raise SystemExit(main())
