"""The first and the second ``predict`` of a fitted estimator, on one row.

Each repetition is a fresh process that loads a saved estimator with 100 draws, as a
service would, and asks it for one row again and again. Beside it stand ``MCDropout`` on
its network, whose plan is known, and one plain pass; and the first answer of an
estimator in a process in which another has answered before.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

import caveat
from benchmarks.results import FOLDER, Provenance, Report, console, store_markdown
from caveat import noise
from caveat.estimators import DropoutRegressor, Schedule

MODULE = "benchmarks.bench_predict"
N_DRAWS = 100
LIMIT = 1 / 3
AGAIN = 21  # timed answers after the first
NOISES: dict[str, str | noise.Noise] = {
    "bernoulli": "bernoulli",
    "gaussian": "gaussian",
    "Concrete": noise.Concrete(0.1),
}
ON_UNITS = ("bernoulli", "gaussian")
NOTES = (
    f"Milliseconds for one row with {N_DRAWS} draws of a 13-50-1 net; medians.",
    "first, second: in a fresh process, of an estimator just loaded.",
    "next first: of another estimator in that process, never asked before.",
    "MCDropout: draws of its network in float64, not the first time.",
    f"Goal for noise on units: the second takes at most {LIMIT:.2f} of the first.",
    "A family of noise keeps its plan, not its masks; its draws are the engine's.",
)


@dataclass(frozen=True)
class Answers:
    """Seconds in one process."""

    first: float
    second: float
    next_first: float
    engine: float
    plain: float


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns 1 if the goal is missed in a full run."""
    given = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    chosen, _ = parser.parse_known_args(given)
    if chosen.child is not None:
        print(json.dumps(asdict(measured(chosen.child))))
        return 0
    repetitions = 1 if chosen.quick else chosen.repetitions
    found = {name: _runs(name, repetitions) for name in NOISES}
    report = _report(found)
    report.show(console())
    if not chosen.quick:
        provenance = Provenance.now(MODULE, given)
        store_markdown(FOLDER / "predict.md", provenance, [report])
    missed = any(_ratio(found[name]) > LIMIT for name in ON_UNITS)
    return int(missed and not chosen.quick)


def _runs(name: str, repetitions: int) -> list[Answers]:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.caveat"
        caveat.save(fitted(name), path)
        return [_in_fresh_process(path) for _ in range(repetitions)]


def fitted(name: str, *, n_draws: int = N_DRAWS) -> DropoutRegressor:
    """Fit a 13-50-1 net with this noise for two epochs."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 13))
    model = DropoutRegressor(
        noise=NOISES[name],
        precision=4.0,
        schedule=Schedule(epochs=2),
        n_draws=n_draws,
        random_state=0,
    )
    return model.fit(x, x[:, 0] + 0.5 * rng.normal(size=200))


def _in_fresh_process(path: str) -> Answers:
    command = [sys.executable, "-m", MODULE, "--child", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Answers(**json.loads(done.stdout))


def measured(path: Path) -> Answers:
    """The times of this process.

    Parameters
    ----------
    path : Path
        Of a saved DropoutRegressor.

    Returns
    -------
    Answers
    """
    model, other = caveat.load(path), caveat.load(path)
    row = np.zeros((1, model.n_features_in_))
    first = _timed(lambda: model.predict(row))
    second = _timed(lambda: model.predict(row))
    net = model.networks_[0].double()
    inputs = torch.from_numpy(row)
    next_first = _timed(lambda: other.predict(row))
    engine = caveat.MCDropout(net, seed=0)
    draw = partial(engine.draws, inputs, n_draws=N_DRAWS, progress=False)
    draw()
    with torch.no_grad():
        plain = _typical(lambda: net(inputs))
    return Answers(first, second, next_first, _typical(draw), plain)


def _timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _typical(run: Callable[[], object]) -> float:
    return statistics.median(_timed(run) for _ in range(AGAIN))


def _ratio(runs: Sequence[Answers]) -> float:
    return statistics.median(run.second / run.first for run in runs)


def _report(found: dict[str, list[Answers]]) -> Report:
    def milli(values: Sequence[float]) -> str:
        return f"{statistics.median(values) * 1e3:.2f}"

    table = [
        [
            name,
            milli([run.first for run in runs]),
            milli([run.second for run in runs]),
            f"{_ratio(runs):.2f}",
            milli([run.next_first for run in runs]),
            milli([run.engine for run in runs]),
            milli([run.plain for run in runs]),
        ]
        for name, runs in found.items()
    ]
    return Report(
        title="Predicting one row",
        columns=(
            "noise",
            "first",
            "second",
            "ratio",
            "next first",
            "MCDropout",
            "one pass",
        ),
        rows=table,
        notes=NOTES,
    )


if __name__ == "__main__":
    raise SystemExit(main())
