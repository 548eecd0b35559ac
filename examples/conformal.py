"""Intervals that keep their promise, whatever the network thinks of itself
========================================================================

A network that is too sure predicts the progression of diabetes, and another one reads
digits. Calibration rows turn their predictions into intervals and into sets of digits
that hold the truth for nine rows of ten; many random splits show that they do.

::

    python examples/conformal.py [figure.png] [--quick]
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import betabinom
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

from caveat import (
    CategoricalPredictive,
    DropoutClassifier,
    DropoutRegressor,
    GaussianPredictive,
)
from caveat.decisions import (
    AdaptiveSets,
    LeastAmbiguous,
    QuantileResidual,
    ScaledResidual,
    conformal,
)
from caveat.estimators import Schedule

Array = NDArray[np.float64]

LEVEL = 0.9
N_TRAIN, N_CALIBRATION = 142, 150  # of 442 patients
INTERVALS = {"scaled residuals": ScaledResidual(), "quantiles": QuantileResidual(LEVEL)}
SETS = {"least ambiguous": LeastAmbiguous(), "adaptive": AdaptiveSets(seed=0)}
SEED = 0


def main(path: Path, quick: bool) -> None:
    """Intervals for diabetes, sets for digits, and a figure."""
    predictive, y = patients(quick)
    n_splits = 10 if quick else 200
    generator = np.random.default_rng(SEED)
    splits = [generator.permutation(len(y)) for _ in range(n_splits)]
    covered = try_intervals(predictive, y, splits)
    print_intervals(predictive, y, covered)
    print_sets(*digits(quick))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure(predictive, y, covered).savefig(path, dpi=130)
    print(f"\n{path}")


def patients(quick: bool) -> tuple[GaussianPredictive, Array]:
    """Predictions of the patients that the network was not trained on."""
    x, y = load_diabetes(return_X_y=True)
    x_train, x, y_train, y = train_test_split(
        x, y, train_size=N_TRAIN, random_state=SEED
    )
    model = DropoutRegressor(
        drop_rate=0.2,
        precision=30.0**-2,  # a guess: the noise is in fact larger
        schedule=Schedule(epochs=10 if quick else 60),
        n_draws=50 if quick else 100,
        random_state=SEED,
    ).fit(x_train, y_train)
    return model.predictive(x), y


def try_intervals(
    predictive: GaussianPredictive, y: Array, splits: list[NDArray[np.int64]]
) -> Array:
    """Share of test patients inside, for many splits into calibration and test."""
    shares = []
    for rows in splits:
        known, new = rows[:N_CALIBRATION], rows[N_CALIBRATION:]
        found = conformal(predictive[known], y[known], level=LEVEL)
        lower, upper = found.interval(predictive[new])
        shares.append(((lower <= y[new]) & (y[new] <= upper)).mean())
    return np.array(shares)


def print_intervals(predictive: GaussianPredictive, y: Array, covered: Array) -> None:
    """One split in detail, and the average over all."""
    known, new = slice(None, N_CALIBRATION), slice(N_CALIBRATION, None)
    lower, upper = (v.numpy() for v in predictive[new].interval(LEVEL))
    head = f"diabetes, {LEVEL:.0%} intervals"
    print(f"{head:<32} {'inside':>7} {'mean width':>12}")
    _print_line("the network's own", lower, upper, y[new])
    for name, score in INTERVALS.items():
        found = conformal(predictive[known], y[known], level=LEVEL, score=score)
        _print_line(f"conformal, {name}", *found.interval(predictive[new]), y[new])
    print(found.promise)
    error = covered.std() / np.sqrt(len(covered))
    print(
        f"inside on average over {len(covered)} splits: {covered.mean():.1%} (± "
        f"{error:.1%}), from {covered.min():.1%} to {covered.max():.1%}"
    )


def _print_line(name: str, lower: Array, upper: Array, y: Array) -> None:
    inside = ((lower <= y) & (y <= upper)).mean()
    print(f"  {name:<30} {inside:7.1%} {np.mean(upper - lower):12.1f}")


def digits(quick: bool) -> tuple[CategoricalPredictive, NDArray[np.int64]]:
    """Predictions of digits, after learning from 100 of them."""
    x, y = load_digits(return_X_y=True)
    x_train, x, y_train, y = train_test_split(
        x, y, train_size=100, stratify=y, random_state=SEED
    )
    model = DropoutClassifier(
        (50,),
        drop_rate=0.2,
        schedule=Schedule(epochs=20 if quick else 100),
        n_draws=50 if quick else 100,
        random_state=SEED,
    ).fit(x_train, y_train)
    return model.predictive(x), y


def print_sets(predictive: CategoricalPredictive, y: NDArray[np.int64]) -> None:
    """How often sets of digits hold the right one, and how large they are."""
    half = len(y) // 2
    right = (predictive.label.numpy() == y)[half:]
    head = f"digits, {right.mean():.1%} read rightly"
    sizes = " ".join(f"{size:>5}" for size in ("empty", "1", "2", "3+"))
    print(f"\n{head:<32} {'inside':>7}  {sizes}")
    for level in (LEVEL, 0.99):
        for name, score in SETS.items():
            found = conformal(predictive[:half], y[:half], level=level, score=score)
            sets = found.sets(predictive[half:])
            inside = sets[np.arange(len(sets)), y[half:]].mean()
            numbers = np.bincount(np.minimum(sets.sum(1), 3), minlength=4)
            counts = " ".join(f"{n:5d}" for n in numbers)
            print(f"  {level:.0%} sets, {name:<20} {inside:7.1%}  {counts}")


def figure(predictive: GaussianPredictive, y: Array, covered: Array) -> Figure:
    """Intervals before and after, and coverage over splits."""
    drawn = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = drawn.subplots(1, 2, width_ratios=(1.6, 1))
    _draw_intervals(left, predictive, y)
    _draw_coverage(right, covered, len(y) - N_CALIBRATION)
    return drawn


def _draw_intervals(ax: Axes, predictive: GaussianPredictive, y: Array) -> None:
    known, new = slice(None, N_CALIBRATION), slice(N_CALIBRATION, None)
    mean = predictive[new].mean.numpy().reshape(-1)
    order = np.argsort(mean)
    place = np.arange(len(order))
    found = conformal(predictive[known], y[known], level=LEVEL)
    lower, upper = found.interval(predictive[new])
    own = [v.numpy().reshape(-1) for v in predictive[new].interval(LEVEL)]
    ax.fill_between(
        place, lower[order], upper[order], color="#9ecae1", label="conformal"
    )
    ax.fill_between(
        place, own[0][order], own[1][order], color="#6baed6", label="the network's own"
    )
    ax.plot(place, mean[order], color="#08519c")
    ax.plot(place, y[new][order], "k.", markersize=4, label="observed")
    ax.set(xlabel="patients, by prediction", ylabel="progression")
    ax.set_title(f"{LEVEL:.0%} intervals")
    ax.legend(frameon=False, loc="upper left", fontsize=8)


def _draw_coverage(ax: Axes, covered: Array, n_new: int) -> None:
    """Beside what theory says of so many calibration and test rows."""
    counts = np.arange(n_new + 1)
    rank = int(np.ceil((N_CALIBRATION + 1) * LEVEL))
    law = betabinom(n_new, rank, N_CALIBRATION + 1 - rank).pmf(counts)
    values, heights = np.unique(np.round(covered * n_new), return_counts=True)
    ax.bar(values / n_new, heights / len(covered), width=0.8 / n_new, color="#9ecae1")
    ax.plot(counts / n_new, law, color="black", linewidth=1, label="theory")
    ax.axvline(LEVEL, color="#D55E00", linestyle=":", label="level")
    ax.set(xlim=(0.78, 1.0), xlabel="share inside", ylabel="share of splits")
    ax.set_title(f"coverage over {len(covered)} random splits")
    ax.legend(frameon=False, loc="upper left", fontsize=8)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", nargs="?", default="outputs/conformal.png", type=Path)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    given = parser.parse_args()
    main(given.path, given.quick)
