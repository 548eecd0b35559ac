"""Are the error bars right? A report, and one number that sets them right
=======================================================================

Two networks that are too sure: a regression whose noise was guessed too small, and a
classifier trained for long on few digits. Held-out rows find the precision of the one
and the temperature of the other; test rows show what became of it.

::

    python examples/calibration.py [figure.png] [--quick]
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

from caveat import DropoutClassifier, DropoutRegressor, Predictive
from caveat.estimators import Schedule
from caveat.evaluation import (
    CoverageDisplay,
    Evaluation,
    ReliabilityDisplay,
    RetentionDisplay,
    calibrate,
    evaluate,
)

GUESSED_NOISE = 30.0  # standard deviation, in the units of the progression of diabetes
BLUE, RED = "#0072B2", "#D55E00"
SEED = 0


class Story(NamedTuple):
    """Test rows before and after calibration."""

    before: Predictive
    after: Predictive
    y: NDArray[Any]


def main(path: Path, quick: bool) -> None:
    """Train, calibrate on held-out rows, report on test rows."""
    diabetes, digits = regression(quick), classification(quick)
    for name, story in (("diabetes", diabetes), ("digits", digits)):
        print(f"\n{name}: test rows before and after")
        print(side_by_side(*(evaluate(p, story.y) for p in story[:2])))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure(diabetes, digits).savefig(path, dpi=130)
    print(f"\n{path}")


def regression(quick: bool) -> Story:
    """Patients with diabetes; a third to learn from, a third to calibrate."""
    x, y = load_diabetes(return_X_y=True)
    x, x_test, y, y_test = train_test_split(x, y, test_size=147, random_state=SEED)
    model = DropoutRegressor(
        drop_rate=0.2,
        precision=GUESSED_NOISE**-2,
        schedule=Schedule(epochs=10 if quick else 60),
        n_draws=50 if quick else 200,
        random_state=SEED,
    ).fit(x[:147], y[:147])
    calibration = calibrate(model.predictive(x[147:]), y[147:])
    noise = GUESSED_NOISE * calibration.factor**-0.5
    print(f"noise of an observation: guessed {GUESSED_NOISE:.1f}, found {noise:.1f}")
    before = model.predictive(x_test)
    return Story(before, calibration.apply(before), y_test)


def classification(quick: bool) -> Story:
    """Digits; 150 to learn from, 600 to calibrate."""
    x, y = load_digits(return_X_y=True)
    parts = train_test_split(x, y, train_size=750, stratify=y, random_state=SEED)
    x, x_test, y, y_test = parts
    model = DropoutClassifier(
        (100,),
        drop_rate=0.1,
        schedule=Schedule(epochs=20 if quick else 200),
        n_draws=50 if quick else 200,
        random_state=SEED,
    ).fit(x[:150], y[:150])
    calibration = calibrate(model.predictive(x[150:]), y[150:])
    print(f"temperature: {calibration.temperature:.2f}")
    before = model.predictive(x_test)
    return Story(before, calibration.apply(before), y_test)


def side_by_side(before: Evaluation, after: Evaluation) -> str:
    """Two reports as one table."""
    width = max(map(len, before))
    lines = [f"{'':<{width}}  {'before':>16}  {'after':>16}"]
    lines += [f"{n:<{width}}  {before[n]!s:>16}  {after[n]!s:>16}" for n in before]
    return "\n".join([*lines, *after.notes])


def figure(diabetes: Story, digits: Story) -> Figure:
    """Coverage, reliability and retention."""
    drawn = Figure(figsize=(12, 3.9), layout="constrained")
    left, middle, right = drawn.subplots(1, 3)
    for name, k, colour in (("before", 0, RED), ("after", 1, BLUE)):
        CoverageDisplay.from_predictive(
            diabetes[k], diabetes.y, ax=left, color=colour, label=name
        )
        display = ReliabilityDisplay.from_predictive(
            digits[k], digits.y, n_bins=8, strategy="quantile", ax=middle, color=colour
        )
        handle = display.ax_.containers[-1]
        handle.set_label(f"{name}, {handle.get_label()}")
    RetentionDisplay.from_predictive(digits.after, digits.y, ax=right, color=BLUE)
    left.set_title("diabetes: intervals")
    middle.set_title("digits: probabilities")
    right.set_title("digits: errors left if the surest are kept")
    for ax in (left, middle, right):
        ax.legend(frameon=False, loc="upper left", fontsize=8)
    return drawn


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", nargs="?", default="outputs/calibration.png", type=Path)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    given = parser.parse_args()
    main(given.path, given.quick)
