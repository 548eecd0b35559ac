"""The figure of the first page: digits that a network knows it cannot read.

It is of the network of docs/decide.md, and of the rows counted there::

    python docs/_site/front.py [figure.png]
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure, SubFigure
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from caveat import DropoutClassifier
from caveat.decisions import ErrorRate, defer
from caveat.estimators import Schedule

BLUE, RED, GREY = "#0072B2", "#D55E00", "#636363"
SHOWN = 6  # digits in a row


class Found(NamedTuple):
    """What the network says of rows that trained and chose nothing."""

    images: NDArray[np.float64]  # shape: (rows, 8, 8)
    truth: NDArray[np.int64]
    probs: NDArray[np.float64]  # shape: (rows, classes)
    entropy: NDArray[np.float64]
    deferred: NDArray[np.bool_]

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which rows are read wrongly."""
        found: NDArray[np.bool_] = self.probs.argmax(1) != self.truth
        return found


def computed() -> Found:
    """The network and the policy of docs/decide.md."""
    x, y = load_digits(return_X_y=True)
    x_train, x, y_train, y = train_test_split(x, y, train_size=300, random_state=0)
    model = DropoutClassifier(
        (100,), drop_rate=0.3, schedule=Schedule(epochs=30), random_state=0
    ).fit(x_train, y_train)
    held_out, new = model.predictive(x[:800]), model.predictive(x[800:])
    policy = defer(held_out, y[:800], target=ErrorRate(0.05), score="entropy")
    deferred = np.asarray(policy.apply(new).deferred)
    return Found(
        x[800:].reshape(-1, 8, 8),
        y[800:],
        new.probs.double().numpy(),
        new.entropy.double().numpy(),
        deferred,
    )


def figure(found: Found) -> Figure:
    """The surest and the least sure digits, and what is gained by handing these on."""
    drawn = Figure(figsize=(6, 6.1), layout="constrained")
    top, middle, bottom = drawn.subfigures(3, 1, height_ratios=(1, 1.2, 1.5))
    order = np.argsort(found.entropy)
    labels = found.probs.argmax(1)[order]
    first = [int((labels == k).argmax()) for k in np.unique(labels)]
    surest = order[sorted(first)[:SHOWN]]  # of each digit one
    _digits(top, found, surest, "It is sure of these …")
    _digits(middle, found, order[::-1][:SHOWN], "… and says so where it is not")
    _curve(bottom.subplots(), found)
    return drawn


def _digits(part: SubFigure, found: Found, rows: Any, title: str) -> None:
    part.suptitle(title, fontsize=15, fontweight="bold", x=0.01, ha="left")
    for ax, row in zip(part.subplots(1, SHOWN), rows, strict=True):
        padded = np.pad(found.images[row], 1)
        ax.imshow(padded, cmap="gray_r", interpolation="bicubic")
        ax.set_axis_off()
        best = found.probs[row].argsort()[::-1][:2]
        said = [f"{k}: {found.probs[row, k]:.0%}" for k in best]
        is_sure = not found.deferred[row]
        text = said[0] if is_sure else "\n".join(said)
        colour = BLUE if is_sure else RED
        ax.text(
            0.5, 0.0, text, transform=ax.transAxes, ha="center", va="top",
            fontsize=13, color=colour,
        )  # fmt: skip


def _curve(ax: Any, found: Found) -> None:
    """Errors among the rows that are answered, the least sure handed on first."""
    wrong = found.wrong[np.argsort(-found.entropy)]
    left = len(wrong) - np.arange(len(wrong))
    share = wrong[::-1].cumsum()[::-1] / left
    handed = np.arange(len(wrong)) / len(wrong)
    shown = handed <= 0.25
    ax.plot(100 * handed[shown], 100 * share[shown], color=BLUE, linewidth=2.5)
    before, after = 100 * share[0], 100 * found.wrong[~found.deferred].mean()
    at = 100 * found.deferred.mean()
    for x, y, words, offset in (
        (0.0, before, f"{before:.1f}% wrong if it answers all", (12, 2)),
        (at, after, f"{after:.1f}% wrong, {at:.0f}% handed on", (2, 18)),
    ):
        ax.plot(x, y, "o", color=RED, markersize=9, clip_on=False, zorder=3)
        ax.annotate(
            words, (x, y), offset, textcoords="offset points", fontsize=13, va="center"
        )
    ax.set(xlim=(0, 25), ylim=(0, 5.5))
    ax.figure.suptitle(
        "Hand on what it doubts: few errors are left",
        fontsize=15, fontweight="bold", x=0.01, ha="left",
    )  # fmt: skip
    ax.set_xlabel("handed to a person", fontsize=13)
    ax.set_ylabel("wrong", fontsize=13)
    ax.xaxis.set_major_formatter("{x:.0f}%")
    ax.yaxis.set_major_formatter("{x:.0f}%")
    ax.tick_params(labelsize=12)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#ebebeb")
    ax.set_axisbelow(True)


def main(path: Path) -> None:
    """Compute, and draw."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure(computed()).savefig(path, dpi=180)
    print(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    place = Path(__file__).parents[1] / "figures" / "front.png"
    parser.add_argument("path", nargs="?", default=place, type=Path)
    main(parser.parse_args().path)
