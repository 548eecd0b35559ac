"""Which digits to read oneself: a network that hands on what it is unsure about
=============================================================================

A dropout network learns to read digits from few examples. On rows it has not seen, a
threshold on its uncertainty is chosen such that at most 2 % of the digits it accepts
are read wrongly, with a confidence of 90 %. Test rows show what became of the promise.

::

    python examples/defer.py [figure.png] [--quick]
"""

import argparse
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from caveat import CategoricalPredictive, DropoutClassifier
from caveat.decisions import Costs, DeferralPolicy, ErrorRate, defer
from caveat.errors import CaveatWarning
from caveat.estimators import Schedule
from caveat.evaluation import RiskCoverageDisplay, aurc, ood_auroc

SCORES = ("least_confidence", "entropy", "mutual_information", "variation_ratio")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
TARGET = ErrorRate(0.02, confidence=0.9)
N_TRAIN, N_CALIBRATION = 300, 800
SHOWN = 15  # digits in the figure
SEED = 0


class Rows(NamedTuple):
    """Predictions of some rows, and what they are."""

    predictive: CategoricalPredictive
    y: NDArray[np.int64]
    images: NDArray[np.float64]


def main(path: Path, quick: bool) -> None:
    """Train, choose, test, draw."""
    held_out, test, noise = predict(quick)
    policy = choose(held_out)
    judge(policy, test)
    other_targets(held_out)
    found = ood_auroc(test.predictive, noise, score="mutual_information")
    print(f"\nshuffled pixels told from digits by mutual information: AUROC {found}")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure(policy, held_out, test).savefig(path, dpi=130)
    print(path)


def predict(quick: bool) -> tuple[Rows, Rows, CategoricalPredictive]:
    """Calibration rows, test rows, and digits whose pixels were shuffled."""
    x, y = load_digits(return_X_y=True)
    x_train, x, y_train, y = train_test_split(
        x, y, train_size=N_TRAIN, stratify=y, random_state=SEED
    )
    model = DropoutClassifier(
        (100,),
        drop_rate=0.3,
        schedule=Schedule(epochs=20 if quick else 100),
        n_draws=50 if quick else 200,
        random_state=SEED,
    ).fit(x_train, y_train)
    parts = np.split(np.arange(len(x)), [N_CALIBRATION])
    held_out, test = (Rows(model.predictive(x[p]), y[p], x[p]) for p in parts)
    shuffled = np.random.default_rng(SEED).permuted(test.images, axis=1)
    return held_out, test, model.predictive(shuffled)


def choose(held_out: Rows) -> DeferralPolicy:
    """The threshold for a score that was fixed beforehand.

    To choose the score too, on the same rows, would spoil the promise.
    """
    print(f"{len(held_out.y)} calibration rows; area under the risk-coverage curve:")
    for score in SCORES:
        area = aurc(held_out.predictive, held_out.y, score=score)
        print(f"  {score:<20} {area}")
    print()
    policy = defer(held_out.predictive, held_out.y, target=TARGET, score=SCORES[0])
    print(policy)
    return policy


def judge(policy: DeferralPolicy, test: Rows) -> None:
    """What the policy does on rows that chose nothing."""
    decision = policy.apply(test.predictive)
    wrong = test.predictive.label.numpy() != test.y
    print(f"\n{decision}")
    print(f"wrong among all test rows:       {wrong.mean():.1%}")
    print(f"wrong among the accepted:        {wrong[decision.accepted].mean():.1%}")
    print(f"wrong among the deferred:        {wrong[decision.deferred].mean():.1%}")
    row = int(decision.deferred.argmax())
    print(f"for example, row {row}: {decision.reasons[row]}")


def other_targets(held_out: Rows) -> None:
    """Costs, and a promise that so few rows cannot support."""
    predictive, y = held_out.predictive, held_out.y
    print("\na wrong digit costs 20, a look by a human 1:")
    print(defer(predictive, y, target=Costs(wrong=20.0, review=1.0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaveatWarning)
        policy = defer(predictive, y, target=ErrorRate(0.001, confidence=0.99))
    print("\none error in a thousand, with a confidence of 99 %:")
    print(policy.promise)


def figure(policy: DeferralPolicy, held_out: Rows, test: Rows) -> Figure:
    """Risk against coverage by score, and the digits that look hardest."""
    drawn = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = drawn.subfigures(1, 2, width_ratios=(1.35, 1))
    _curves(left.subplots(), policy, held_out)
    scores = policy.apply(test.predictive).scores
    hardest = np.argsort(-scores)[:SHOWN]
    for ax, row in zip(right.subplots(3, 5).flat, hardest, strict=True):
        ax.imshow(test.images[row].reshape(8, 8), cmap="gray_r")
        said = int(test.predictive.label[row])
        colour = "black" if said == test.y[row] else "#D55E00"
        ax.set_title(f"{test.y[row]}, read as {said}", fontsize=8, color=colour)
        ax.set_axis_off()
    right.suptitle("test digits deferred first", fontsize=10)
    return drawn


def _curves(ax: Axes, policy: DeferralPolicy, held_out: Rows) -> None:
    policy.plot(ax, color=COLOURS[0], label=SCORES[0].replace("_", " "))
    for score, colour in zip(SCORES[1:], COLOURS[1:], strict=True):
        display = RiskCoverageDisplay.from_predictive(
            held_out.predictive,
            held_out.y,
            score=score,
            ax=ax,
            color=colour,
            label=score.replace("_", " "),
        )
        display.ax_.collections[-1].remove()  # one shade is enough
    ax.axhline(TARGET.rate, color="black", linewidth=0.8, label="target")
    ax.set(ylim=(0, 0.08), ylabel="error rate of accepted rows")
    ax.legend(frameon=False, loc="upper left", fontsize=8)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", nargs="?", default="outputs/defer.png", type=Path)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    given = parser.parse_args()
    main(given.path, given.quick)
