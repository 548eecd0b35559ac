"""The Bayesian dropout linear model beside scikit-learn's ridge regression."""

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks import memory
from benchmarks.linear_data import Problem, make_problem
from benchmarks.results import (
    FOLDER,
    Provenance,
    Report,
    console,
    store_json,
    store_markdown,
)
from benchmarks.timing import interleaved
from caveat.estimators import BayesianDropoutRegression, dropout_path
from caveat.maxent.linear.batched import batched_predictions

MODULE = "benchmarks.bench_linear"
TOL = 1e-8
PRECISIONS = np.logspace(-2, 2, 20)
RATES = np.linspace(0.05, 0.95, 20)
RATIO = 4.0
SIZES = {
    False: {"n_rows": 4500, "n_new": 1500, "n_features": 150_000},
    True: {"n_rows": 1200, "n_new": 100, "n_features": 10_000},
}
COLUMNS = ("", "ridge s", "ours s", "ridge / ours", "at least", "met", "errors")
NOTES = (
    "Medians of interleaved repetitions in one process, the same threads for all.",
    f'ridge: scikit-learn\'s Ridge(solver="sparse_cg", tol={TOL:g}, '
    "fit_intercept=False), once or once per setting.",
    "errors: relative error of the weights (mean, paths: the setting in the middle) "
    "against Cholesky, ridge then ours; ours must not be larger.",
    "variance: fit and posterior standard deviation at all new rows; at most 3 s.",
    "batched: mean predictions of 100,000 data sets of 20 rows for one setting; "
    "no ridge beside it.",
)


@dataclass(frozen=True)
class Task:
    """What is timed, and what is asked of it."""

    name: str
    ours: Callable[[], Any]
    ridge: Callable[[], Any] | None = None
    least_ratio: float | None = None
    most_seconds: float | None = None
    errors: tuple[float, float] | None = None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if a target was missed in a full run."""
    given = sys.argv[1:] if argv is None else list(argv)
    chosen = _options().parse_args(given)
    problem = make_problem(**SIZES[chosen.quick])
    if chosen.child:
        return _child(problem)
    out = console()
    repetitions = 1 if chosen.quick else chosen.repetitions
    with threadpool_limits(chosen.threads):
        records = [_record(task, repetitions) for task in _tasks(problem, chosen.quick)]
    reports = [_report(records, problem), _memory_report(problem, chosen.quick)]
    for report in reports:
        report.show(out)
    folder = chosen.output or (None if chosen.quick else FOLDER)
    if folder is not None:
        provenance = Provenance.now(MODULE, given)
        store_markdown(folder / "linear.md", provenance, reports)
        store_json(
            folder / "linear.json",
            provenance,
            repetitions=repetitions,
            blas_threads=chosen.threads,
            tasks=records,
        )
    return int(not chosen.quick and any(record["met"] is False for record in records))


def _options() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(f"python -m {MODULE}", description=__doc__)
    found.add_argument("--quick", action="store_true", help="a small problem, once")
    found.add_argument("--threads", type=int, default=2, help="threads of BLAS")
    found.add_argument("--repetitions", type=int, default=5, help="median of so many")
    found.add_argument("--output", type=Path, help="folder for the results")
    found.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return found


def _ridge(problem: Problem, alpha: float) -> NDArray[np.float64]:
    model = Ridge(alpha=alpha, solver="sparse_cg", tol=TOL, fit_intercept=False)
    found: NDArray[np.float64] = model.fit(problem.x, problem.y).coef_
    return found


def _regression(**settings: Any) -> BayesianDropoutRegression:
    return BayesianDropoutRegression(fit_intercept=False, **settings)


def _tasks(problem: Problem, quick: bool) -> list[Task]:
    x, y, x_new = problem.x, problem.y, problem.x_new
    middle = len(PRECISIONS) // 2
    ridges = [partial(_ridge, problem, alpha) for alpha in PRECISIONS.tolist()]

    def mean() -> NDArray[np.float64]:
        return _regression().fit(x, y).coef_

    def precision_path() -> NDArray[np.float64]:
        return dropout_path(x, y, 0.5, prior_precision=PRECISIONS, tol=TOL).coefs

    def rate_path() -> NDArray[np.float64]:
        return dropout_path(x, y, RATES, prior_ratio=RATIO, tol=TOL).coefs

    def all_ridges() -> list[NDArray[np.float64]]:
        return [ridge() for ridge in ridges]

    alpha, rate = float(PRECISIONS[middle]), float(RATES[middle])
    ridge_error = _error(_ridge(problem, alpha), _exact(problem, 0.0, alpha))

    def errors(
        ours: NDArray[np.float64], rate: float, precision: float
    ) -> tuple[float, float]:
        return ridge_error, _error(ours, _exact(problem, rate, precision))

    tied = RATIO * rate * (1 - rate)
    paths = precision_path()[:, middle], rate_path()[:, middle]
    return [
        Task("mean", mean, ridges[middle], 1.0, errors=errors(mean(), 0.5, 1.0)),
        Task(
            "mean, 20 prior precisions",
            precision_path,
            all_ridges,
            5.0,
            errors=errors(paths[0], 0.5, alpha),
        ),
        Task(
            "mean, 20 rates, one Krylov space",
            rate_path,
            all_ridges,
            5.0,
            errors=errors(paths[1], rate, tied),
        ),
        Task(
            f"variance at {x_new.shape[0]} rows",
            lambda: _regression().fit(x, y).predict(x_new, return_std=True),
            most_seconds=3.0,
        ),
        *(_batched(p, 2_000 if quick else 100_000) for p in (10, 20, 40)),
    ]


def _batched(n_features: int, n_sets: int) -> Task:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n_sets, 20, n_features))
    y = rng.standard_normal((n_sets, 20))
    return Task(
        f"batched, {n_features} features",
        lambda: batched_predictions(x, y, x, [(0.5, 1e-3)]),
    )


def _exact(problem: Problem, rate: float, precision: float) -> NDArray[np.float64]:
    model = _regression(drop_rate=rate, prior_precision=precision, solver="dual")
    return model.fit(problem.x, problem.y).coef_


def _error(found: NDArray[np.float64], exact: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def _record(task: Task, repetitions: int) -> dict[str, Any]:
    variants = {"ours": task.ours}
    if task.ridge is not None:
        variants["ridge"] = task.ridge
    times = interleaved(variants, repetitions=repetitions)
    ours = times["ours"].median
    ratio = times["ridge"].median / ours if task.ridge is not None else None
    return {
        "task": task.name,
        "seconds": {name: timing._asdict() for name, timing in times.items()},
        "ratio": ratio,
        "least_ratio": task.least_ratio,
        "most_seconds": task.most_seconds,
        "errors": task.errors,
        "met": _met(task, ours, ratio),
    }


def _met(task: Task, seconds: float, ratio: float | None) -> bool | None:
    if task.least_ratio is None and task.most_seconds is None:
        return None
    fast = task.most_seconds is None or seconds <= task.most_seconds
    ahead = ratio is None or task.least_ratio is None or ratio >= task.least_ratio
    right = task.errors is None or task.errors[1] <= task.errors[0]
    return fast and ahead and right


def _report(records: Sequence[dict[str, Any]], problem: Problem) -> Report:
    n_rows, n_features = problem.x.shape
    return Report(
        title=f"Sparse, {n_rows} rows, {n_features} features, "
        f"{problem.x.nnz / n_rows:.0f} non-zeros a row",
        columns=COLUMNS,
        rows=[_row(record) for record in records],
        notes=NOTES,
    )


def _row(record: dict[str, Any]) -> list[str]:
    seconds, errors = record["seconds"], record["errors"]
    return [
        record["task"],
        f"{seconds['ridge']['median']:.3f}" if "ridge" in seconds else "-",
        f"{seconds['ours']['median']:.3f}",
        "-" if record["ratio"] is None else f"{record['ratio']:.2f}",
        "-" if record["least_ratio"] is None else f"{record['least_ratio']:g}",
        {True: "yes", False: "NO", None: "-"}[record["met"]],
        "-" if errors is None else f"{errors[0]:.0e}, {errors[1]:.0e}",
    ]


def _memory_report(problem: Problem, quick: bool) -> Report:
    """Peak of a fresh process, beside the size of the n by n matrix."""
    command = [sys.executable, "-m", MODULE, "--child", *(["--quick"] if quick else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    extra = int(done.stdout.splitlines()[-1])
    data = sum(a.nbytes for a in (problem.x.data, problem.x.indices, problem.x.indptr))
    square = 8 * problem.x.shape[0] ** 2
    return Report(
        title="Peak extra memory of fit and variance",
        columns=("", "MB"),
        rows=[
            ["X", f"{data / 1e6:.0f}"],
            ["n by n", f"{square / 1e6:.0f}"],
            ["n by p, never made", f"{8 * np.prod(problem.x.shape) / 1e6:.0f}"],
            ["ours, above what is held before", f"{extra / 1e6:.0f}"],
        ],
    )


def _child(problem: Problem) -> int:
    _regression().fit(problem.x[:50], problem.y[:50])  # what is loaded on first use
    memory.reset_peak()
    before = memory.peak()
    _regression().fit(problem.x, problem.y).predict(problem.x_new, return_std=True)
    print(memory.peak() - before)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
