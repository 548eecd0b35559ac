"""A first regression with error bars: the progression of diabetes in 442 patients
===============================================================================

Fits ensembles of dropout networks at several drop rates, keeps the one that makes rows
it has not seen most probable (without touching the test rows), and asks whether its
intervals hold as many of the test patients as they promise.

::

    python examples/first_regression.py [figure.png] [--quick]
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from caveat.estimators import DropoutRegressor, Schedule

Array = NDArray[np.float64]

DROP_RATES = (0.05, 0.2, 0.5)
LEVELS = np.arange(0.1, 1.0, 0.1)
SHOWN = 0.9  # level of the intervals in the figure
SEED = 0


@dataclass(frozen=True)
class Patients:
    """Training and test rows; y is the progression one year on."""

    x: Array
    y: Array
    x_test: Array
    y_test: Array


def main(path: Path, quick: bool) -> None:
    """Fit, report, draw."""
    patients = load()
    model = choose(patients, epochs=10 if quick else 100, n_members=1 if quick else 5)
    report(model, patients)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure(model, patients).savefig(path, dpi=160)
    print(path)


def load() -> Patients:
    """Three quarters of the patients to learn from, one quarter to test on."""
    x, y = load_diabetes(return_X_y=True)
    parts = train_test_split(x, y, test_size=0.25, random_state=SEED)
    x_train, x_test, y_train, y_test = parts
    return Patients(x_train, y_train, x_test, y_test)


def choose(patients: Patients, *, epochs: int, n_members: int) -> DropoutRegressor:
    """The model whose validation folds are most probable; the test rows stay unseen."""
    models = [
        DropoutRegressor(
            drop_rate=rate,
            input_drop_rate=rate / 2,
            schedule=Schedule(epochs=epochs),
            n_members=n_members,
            random_state=SEED,
        ).fit(patients.x, patients.y)
        for rate in DROP_RATES
    ]
    for model in models:
        seen = model.validation_log_likelihood_
        print(f"drop rate {model.drop_rate}: validation log-likelihood {seen:.3f}")
    return max(models, key=lambda model: model.validation_log_likelihood_)


def report(model: DropoutRegressor, patients: Patients) -> None:
    """What the chosen model says about the test rows."""
    x, y = patients.x_test, patients.y_test
    mean, std = model.predict(x, return_std=True)
    print(f"chosen drop rate: {model.drop_rate}")
    print(f"noise of an observation: {model.precision_**-0.5:.1f}")
    print(f"test RMSE: {np.sqrt(np.mean((mean - y) ** 2)):.1f}")
    print(f"test log-likelihood: {model.log_likelihood(x, y):.3f}")
    print(f"predicted standard deviations: {std.min():.1f} to {std.max():.1f}")
    print("level   inside")
    for level, inside in zip(LEVELS, coverage(model, x, y), strict=True):
        print(f"{level:5.0%}   {inside:6.1%}")


def coverage(model: DropoutRegressor, x: Array, y: Array) -> Array:
    """Share of observations inside the intervals of each level."""
    predictive = model.predictive(x)
    found = [predictive.interval(level) for level in LEVELS]
    inside = [(low.numpy() < y) & (y < high.numpy()) for low, high in found]
    return np.mean(inside, axis=1)


def figure(model: DropoutRegressor, patients: Patients) -> Figure:
    """Predictions with intervals, and how often the intervals are right."""
    drawn = Figure(figsize=(10, 4.4), layout="constrained")
    left, right = drawn.subplots(1, 2, width_ratios=(1.6, 1))
    _show_predictions(left, model, patients)
    _show_calibration(
        right, coverage(model, patients.x_test, patients.y_test), patients
    )
    return drawn


def _show_predictions(ax: Axes, model: DropoutRegressor, patients: Patients) -> None:
    mean = model.predict(patients.x_test)
    lower, upper = model.predict_interval(patients.x_test, SHOWN)
    order = np.argsort(mean)
    place = np.arange(len(order))
    ax.fill_between(
        place,
        lower[order],
        upper[order],
        color="#9ecae1",
        label=f"{SHOWN:.0%} interval",
    )
    ax.plot(place, mean[order], color="#08519c", label="mean")
    ax.plot(place, patients.y_test[order], "k.", markersize=5, label="observed")
    ax.set_xlabel("test patients, by predicted progression")
    ax.set_ylabel("progression")
    ax.legend(frameon=False, loc="upper left")


def _show_calibration(ax: Axes, inside: Array, patients: Patients) -> None:
    error = 2 * np.sqrt(LEVELS * (1 - LEVELS) / len(patients.y_test))
    ax.fill_between(
        LEVELS, LEVELS - error, LEVELS + error, color="#d9d9d9", label="± 2 binomial sd"
    )
    ax.plot([0, 1], [0, 1], color="#636363", linewidth=1)
    ax.plot(LEVELS, inside, "o-", color="#08519c", label="test patients")
    ax.set_xlabel("level of the interval")
    ax.set_ylabel("observed inside")
    ax.legend(frameon=False, loc="upper left")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "path", nargs="?", default="outputs/first_regression.png", type=Path
    )
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    given = parser.parse_args()
    main(given.path, given.quick)
