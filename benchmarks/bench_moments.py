"""Moments without sampling: their speed, their error, and what integration saves.

Speed: the time of ``MCDropout.moments`` beside 100 draws of the naive loop and of
Caveat. Error: mean and standard deviation of trained networks beside many draws.
Integration: draws that the closed form of the last layer saves, and what it costs.
"""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import trained
from benchmarks.naive import naive_moments
from benchmarks.ours import ask
from benchmarks.results import (
    FOLDER,
    Provenance,
    Report,
    console,
    store_json,
    store_markdown,
)
from benchmarks.timing import interleaved
from benchmarks.trained import Trained
from benchmarks.workloads import WORKLOADS, Workload
from caveat import MCDropout

MODULE = "benchmarks.bench_moments"
STORED = FOLDER / "moments.md"
PAGE = FOLDER.parent.parent / "docs" / "moments.md"
_QUOTED = re.compile(r"(<!-- moments:begin -->\n).*?(<!-- moments:end -->)", re.DOTALL)
N_DRAWS = 100
GOAL = 100.0
TIMED = ("W1", "W2", "W3", "W4")
INTEGRATED = ("W2", "W3", "W3b", "W4")
BLOCK, BLOCKS = 20, 60  # draws of an estimate, and estimates

SPEED_NOTES = (
    f"Seconds for mean and variance. naive: {N_DRAWS} draws of the loop everyone "
    "writes, timed at fewer and scaled; draws: Caveat's regress or classify, "
    f"{N_DRAWS} draws; moments: MCDropout.moments.",
    f"Goal: propagated moments at least {GOAL:.0f} times faster than the naive loop. "
    "Exact moments cost one pass, as all draws of such a network nearly do.",
)
ERROR_NOTES = (
    "mean: root mean square of (moments - sampled mean) in units of the sampled "
    "standard deviation.",
    "sd ratio: standard deviation of the moments over the sampled one; 5 %, 50 % and "
    "95 % of all rows and outputs.",
    "independent: units are taken as independent (the default); correlated: "
    "moments(..., correlated=True).",
)
CLASS_NOTES = (
    "Class probabilities beside those of the draws: mean-field softmax of propagated "
    "moments, and the softmax of one pass with dropout off.",
    "gap: absolute difference of a probability, mean and 99 % of rows and classes; "
    "agree: rows with the same most probable class.",
)
INTEGRATION_NOTES = (
    f"Estimates from {BLOCK} draws, {BLOCKS} times over, on 20 rows: the variance of "
    "the mean, and of the variance, with plain draws over that with the last layer "
    "integrated. So many times fewer draws give the same error.",
    f"time: regress with analytic=True over analytic=False, all rows, {N_DRAWS} draws "
    "kept.",
    "by default: what MCDropout does if not told.",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns 1 if propagated moments miss the goal in a full run."""
    given = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    parser.add_argument("--repetitions", type=int, default=5, help="median of so many")
    parser.add_argument("--output", type=Path, help="folder for the results")
    parser.add_argument("--quote", action="store_true", help="only rewrite the page")
    chosen, _ = parser.parse_known_args(given)
    if chosen.quote:
        PAGE.write_text(quoted(PAGE.read_text(), STORED.read_text()))
        return 0
    torch.set_num_threads(chosen.threads)
    repetitions = 1 if chosen.quick else chosen.repetitions
    speeds = [
        speed(workload, quick=chosen.quick, repetitions=repetitions)
        for workload in _workloads(TIMED, chosen.quick)
    ]
    nets = networks(20 if chosen.quick else trained.STEPS)
    n_draws = 50 if chosen.quick else 4000
    errors = [error for net in nets for error in deviations(net, n_draws)]
    classes = [class_gap(net, n_draws) for net in nets if net.labels is not None]
    savings = [
        saving(workload, quick=chosen.quick, repetitions=repetitions)
        for workload in _workloads(INTEGRATED, chosen.quick)
    ]
    reports = _reports(speeds, errors, classes, savings)
    for report in reports:
        report.show(console())
    folder = chosen.output or (None if chosen.quick else FOLDER)
    if folder is not None:
        provenance = Provenance.now(MODULE, given)
        store_markdown(folder / "moments.md", provenance, reports)
        records = {"speed": speeds, "error": errors, "classes": classes}
        store_json(folder / "moments.json", provenance, **records, integration=savings)
    slow = [s for s in speeds if s["method"] != "exact" and s["ratio"] < GOAL]
    return int(bool(slow) and not chosen.quick)


def quoted(page: str, stored: str) -> str:
    """``page`` with the stored tables between its markers."""
    _, _, body = stored.partition("\n\n")
    body = body.replace("\n## ", "\n### ")
    return _QUOTED.sub(lambda found: found[1] + body + found[2], page)


def networks(steps: int) -> list[Trained]:
    """The trained networks whose moments are compared with draws."""
    return [
        trained.curve(nn.ReLU, steps),
        trained.curve(nn.Tanh, steps),
        trained.table(steps),
        trained.digits(steps),
    ]


def speed(workload: Workload, *, quick: bool, repetitions: int) -> dict[str, Any]:
    """Seconds of the naive loop, of our draws and of moments, for one workload."""
    rows = 20 if quick else workload.rows
    case, switched_on = workload.make(rows), workload.make(rows)
    workload.switch_on(switched_on.model)
    draws = 2 if quick else workload.budget.naive
    read = workload.task.read
    times = interleaved(
        {
            "naive": lambda: naive_moments(switched_on, read, n_draws=draws),
            "draws": lambda: ask(workload, case, N_DRAWS),
            "moments": lambda: MCDropout(case.model).moments(*case.args, **case.kwargs),
        },
        repetitions=repetitions,
    )
    naive = times["naive"].median * N_DRAWS / draws
    found = MCDropout(case.model).moments(*case.args, **case.kwargs)
    return {
        "workload": workload.name,
        "description": workload.description,
        "method": found.method,
        "naive": naive,
        "draws": times["draws"].median,
        "moments": times["moments"].median,
        "ratio": naive / times["moments"].median,
        "ratio_to_draws": times["draws"].median / times["moments"].median,
    }


def deviations(net: Trained, n_draws: int) -> list[dict[str, Any]]:
    """How far moments are from many draws, with and without correlations."""
    mc = MCDropout(net.model, seed=0, analytic=False)
    sampled = mc.regress(net.x, n_draws=n_draws, precision=1.0, keep_draws=False)
    sd = sampled.epistemic_variance.sqrt()
    found = []
    for correlated in (False, True) if net.labels is None else (False,):
        moments = mc.moments(net.x, correlated=correlated)
        gap = (moments.mean - sampled.mean) / sd
        levels = torch.tensor([0.05, 0.5, 0.95])
        ratio = (moments.std / sd).flatten().quantile(levels)
        found.append(
            {
                "network": net.name,
                "units": "correlated" if correlated else "independent",
                "mean": float(gap.square().mean().sqrt()),
                "sd_ratio": ratio.tolist(),
            }
        )
    return found


def class_gap(net: Trained, n_draws: int) -> dict[str, Any]:
    """How far class probabilities are from those of many draws."""
    mc = MCDropout(net.model, seed=0)
    sampled = mc.classify(net.x, n_draws=n_draws, keep_draws=False).probs
    with torch.no_grad():
        one_pass = net.model(net.x).softmax(-1)
    answers = {"moments": mc.moments(net.x).class_probs, "one pass": one_pass}
    return {"network": net.name} | {
        name: _gap(probs, sampled) for name, probs in answers.items()
    }


def _gap(probs: Tensor, sampled: Tensor) -> dict[str, float]:
    gap = (probs - sampled).abs()
    return {
        "mean": float(gap.mean()),
        "high": float(gap.flatten().quantile(0.99)),
        "agree": float((probs.argmax(-1) == sampled.argmax(-1)).float().mean()),
    }


def saving(workload: Workload, *, quick: bool, repetitions: int) -> dict[str, Any]:
    """What integrating the last layer saves in draws, and costs in time."""
    small = workload.make(20)
    blocks = 3 if quick else BLOCKS
    better, plain = (
        torch.stack([_estimate(small, seed, flag) for seed in range(blocks)])
        for flag in (True, False)
    )
    gain = (plain.var(0) / better.var(0)).flatten(1).median(1).values.tolist()
    case = workload.make(20 if quick else workload.rows)
    times = interleaved(
        {"yes": _regress(case, analytic=True), "no": _regress(case, analytic=False)},
        repetitions=repetitions,
    )
    default = _regress(case, analytic=None)().method
    return {
        "workload": workload.name,
        "mean": gain[0],
        "variance": gain[1],
        "time": times["yes"].median / times["no"].median,
        "default": default,
    }


def _estimate(case: Any, seed: int, analytic: bool) -> Tensor:
    mc = MCDropout(case.model, seed=seed, analytic=analytic)
    found = mc.regress(*case.args, n_draws=BLOCK, precision=1.0, **case.kwargs)
    return torch.stack([found.mean, found.epistemic_variance])


def _regress(case: Any, *, analytic: bool | None) -> Callable[[], Any]:
    mc = MCDropout(case.model, seed=0, analytic=analytic)
    return lambda: mc.regress(*case.args, n_draws=N_DRAWS, precision=1.0, **case.kwargs)


def _workloads(names: Sequence[str], quick: bool) -> list[Workload]:
    chosen = names[-1:] if quick else names
    return [workload for workload in WORKLOADS if workload.name in chosen]


def _reports(
    speeds: list[dict[str, Any]],
    errors: list[dict[str, Any]],
    classes: list[dict[str, Any]],
    savings: list[dict[str, Any]],
) -> list[Report]:
    return [
        Report(
            "Speed of moments",
            (
                "",
                "method",
                "naive s",
                "draws s",
                "moments s",
                "naive / moments",
                "draws / moments",
            ),
            [_speed_row(record) for record in speeds],
            SPEED_NOTES,
        ),
        Report(
            "Error of propagated moments, trained networks",
            ("", "units", "mean", "sd ratio 5 %", "50 %", "95 %"),
            [_error_row(record) for record in errors],
            ERROR_NOTES,
        ),
        Report(
            "Class probabilities, trained networks",
            ("", "answer", "mean gap", "99 % gap", "agree"),
            [row for record in classes for row in _class_rows(record)],
            CLASS_NOTES,
        ),
        Report(
            "The last layer integrated",
            ("", "gain, mean", "gain, variance", "time", "by default"),
            [_saving_row(record) for record in savings],
            INTEGRATION_NOTES,
        ),
    ]


def _speed_row(record: dict[str, Any]) -> list[str]:
    seconds = [f"{record[name]:.4g}" for name in ("naive", "draws", "moments")]
    ratios = [f"{record[name]:.1f}" for name in ("ratio", "ratio_to_draws")]
    return [
        f"{record['workload']} {record['description']}",
        record["method"],
        *seconds,
        *ratios,
    ]


def _error_row(record: dict[str, Any]) -> list[str]:
    ratios = [f"{ratio:.2f}" for ratio in record["sd_ratio"]]
    return [record["network"], record["units"], f"{record['mean']:.3f}", *ratios]


def _class_rows(record: dict[str, Any]) -> list[list[str]]:
    return [
        [
            record["network"],
            name,
            f"{record[name]['mean']:.4f}",
            f"{record[name]['high']:.3f}",
            f"{record[name]['agree']:.1%}",
        ]
        for name in ("moments", "one pass")
    ]


def _saving_row(record: dict[str, Any]) -> list[str]:
    numbers = [f"{record[name]:.2f}" for name in ("mean", "variance", "time")]
    return [record["workload"], *numbers, record["default"]]


if __name__ == "__main__":
    raise SystemExit(main())
