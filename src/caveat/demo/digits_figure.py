"""The drawing of the digits task: a 1 that turns, and what is made of it."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from caveat.demo.digits import ANGLES, DIGIT, Turned
from caveat.evaluation.displays import SoftmaxScatterDisplay
from caveat.predictive import CategoricalPredictive


def top_classes(predictive: CategoricalPredictive) -> list[int]:
    """Up to four classes that are likely for some image, in order."""
    peak = predictive.probs.amax(0)
    likely = [c for c in peak.argsort(descending=True).tolist() if peak[c] > 0.1]
    return sorted(likely[:4])


def figure(one: Turned, others: Turned) -> Figure:
    """Softmax inputs, softmax outputs and uncertainty above the images themselves.

    Parameters
    ----------
    one : Turned
        The image that is shown.
    others : Turned
        All of its digit, for their average.
    """
    predictive = one.predictive
    drawn = Figure(figsize=(9, 9), layout="constrained")
    ratios = {"height_ratios": [3, 3, 2, 0.9]}
    inputs, outputs, doubt, strip = drawn.subplots(4, sharex=True, gridspec_kw=ratios)
    display = SoftmaxScatterDisplay.from_predictive(
        predictive, classes=top_classes(predictive), ax=outputs
    )
    display.plot(inputs, inputs=True)
    inputs.set_title(f"(a) softmax input, {predictive.n_draws} draws", loc="left")
    inputs.set_ylabel("logit")
    outputs.set_title(f"(b) softmax output, {predictive.n_draws} draws", loc="left")
    outputs.set_ylabel("probability")
    _legend(inputs, markerscale=2)
    outputs.spines[["top", "right"]].set_visible(False)
    _uncertainties(doubt, one, others)
    _images(strip, one.images, predictive)
    return drawn


def _uncertainties(ax: Axes, one: Turned, others: Turned) -> None:
    """Variation ratio and mutual information of each image, and the average ratio."""
    place = np.arange(len(one.images))
    found = one.predictive
    mean = others.by_angle(others.predictive.variation_ratio)
    n_others = len(others.images) // len(place)
    ax.plot(place, found.variation_ratio, "o-", color="0.15", label="variation ratio")
    label = f"its mean over {n_others} images"
    ax.plot(place, mean, "-", color="0.15", linewidth=0.9, label=label)
    information = found.mutual_information
    ax.plot(place, information, "s--", color="0.55", label="mutual information (nats)")
    ax.set_ylim(bottom=0)
    ax.set_title("(c) uncertainty", loc="left")
    ax.set_ylabel("share or nats")
    _legend(ax)


def _images(ax: Axes, images: Tensor, predictive: CategoricalPredictive) -> None:
    """The images along the axis, each with its angle and its label."""
    for place, image in enumerate(images[:, 0].numpy()):
        extent = (place - 0.45, place + 0.45, 0.0, 1.0)
        ax.imshow(image, cmap="gray_r", extent=extent, aspect="auto", vmin=0, vmax=1)
    labels = predictive.label.tolist()
    names = [f"{a}°\n{label}" for a, label in zip(ANGLES, labels, strict=True)]
    ax.set_xticks(range(len(images)), names)
    ax.set_yticks([])
    ax.set_xlim(-0.6, len(images) - 0.4)
    ax.set_ylim(0, 1)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_xlabel(f"rotation of the digit {DIGIT}, and the class predicted for it")


def _legend(ax: Axes, *, markerscale: float = 1.0) -> None:
    """Beside the data, not over it."""
    drawn = ax.legend(
        loc="lower right",
        bbox_to_anchor=(1, 1),
        borderaxespad=0.1,
        ncols=4,
        frameon=False,
        markerscale=markerscale,
    )
    for handle in drawn.legend_handles:
        if handle is not None:
            handle.set_alpha(1)
    ax.spines[["top", "right"]].set_visible(False)
