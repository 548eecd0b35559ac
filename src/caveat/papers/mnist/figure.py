"""Figure 4, and below it what the uncertainties are good for."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from caveat.papers.mnist.measures import SHARES
from caveat.papers.mnist.records import Numbers
from caveat.papers.mnist.scores import SCORES, Answers
from caveat.papers.style import WIDTH, house_style, ink, name_axes

_MOST_CLASSES = 4
_LIKELY = 0.1  # a class is shown if its probability exceeds this for some image
_SPREAD = 0.36  # width of the column of points of an image
_LAYOUT = "AA;BB;II;CD"  # inputs, outputs, images, errors caught, data sets
_HEIGHTS = (3.0, 2.4, 0.75, 3.0)


def draw(
    image: Tensor, angles: Sequence[int], answers: Answers, numbers: Numbers
) -> Figure:
    """The figure.

    Parameters
    ----------
    image : Tensor of uint8, shape (images, 28, 28)
        The digit at each angle.
    angles : sequence of int
        In degrees.
    answers : Answers
        About these images, with the draws.
    numbers : Numbers
        Of all networks.

    Returns
    -------
    Figure
    """
    with house_style():
        figure = Figure(figsize=(WIDTH, 7.4), dpi=200, layout="constrained")
        axes = figure.subplot_mosaic(_LAYOUT, height_ratios=_HEIGHTS)
        logits = answers.predictive.draws.double()
        classes = shown_classes(answers)
        _scatter(axes["A"], logits, classes)
        _scatter(axes["B"], logits.softmax(-1), classes)
        draws = answers.predictive.n_draws
        name_axes(axes["A"], f"(a) softmax input, {draws} passes", y="logit")
        name_axes(axes["B"], f"(b) softmax output, {draws} passes", y="probability")
        axes["A"].legend(
            title="class",
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            handletextpad=0.1,
            markerscale=2,
        )
        _images(axes["I"], image, angles, answers)
        _caught(axes["C"], numbers)
        _strange(axes["D"], numbers)
        handles, names = axes["C"].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3)
        return figure


def shown_classes(answers: Answers) -> list[int]:
    """The classes that are likely for some image: at most four, in order."""
    peak = answers.predictive.probs.amax(0)
    ranked = [c for c in peak.argsort(descending=True).tolist() if peak[c] > _LIKELY]
    return sorted(ranked[:_MOST_CLASSES])


def _scatter(axes: Axes, values: Tensor, classes: Sequence[int]) -> None:
    n_draws, n_images, _ = values.shape
    for k, c in enumerate(classes):
        offset = _SPREAD * ((k + 0.5) / len(classes) - 0.5) * 2.0
        jitter = np.linspace(-0.06, 0.06, n_draws)[:, None]
        place = np.arange(n_images) + offset + jitter
        style = ink(k)
        axes.plot(
            place.ravel(),
            values[..., c].numpy().ravel(),
            linestyle="none",
            marker=style["marker"],
            color=style["color"],
            markerfacecolor=style["markerfacecolor"],
            markersize=2.0,
            markeredgewidth=0.4,
            label=str(c),
        )
    axes.set_xlim(-0.6, n_images - 0.4)
    axes.set_xticks(range(n_images), [])
    axes.tick_params(axis="x", length=0)


def _images(axes: Axes, image: Tensor, angles: Sequence[int], answers: Answers) -> None:
    for place, one in enumerate(image.numpy()):
        extent = (place - 0.46, place + 0.46, 0.0, 1.0)
        axes.imshow(one, extent=extent, aspect="auto", vmin=0, vmax=255)
    found = answers.predictive
    names = [
        f"{angle}°\n{label}\n{ratio:.2f}"
        for angle, label, ratio in zip(
            angles, found.label.tolist(), found.variation_ratio.tolist(), strict=True
        )
    ]
    axes.set_xticks(range(len(image)), names)
    axes.set_yticks([])
    axes.set_xlim(-0.6, len(image) - 0.4)
    axes.set_ylim(0, 1)
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.set_xlabel("rotation, class predicted, variation ratio")


def _caught(axes: Axes, numbers: Numbers) -> None:
    percents = [100 * share for share in SHARES]
    for k, name in enumerate(SCORES):
        means = [numbers.mean("set aside", f"{share:g}", name) for share in SHARES]
        axes.plot(percents, [100 * mean for mean in means], label=name, **ink(k))
    axes.set_ylim(0, 102)
    name_axes(
        axes, "(c) test errors caught", "% of images set aside", "% of errors caught"
    )


def _strange(axes: Axes, numbers: Numbers) -> None:
    sets = numbers.cases("AUROC")
    for k, name in enumerate(SCORES):
        for row, data in enumerate(sets):
            values = numbers.values("AUROC", data, name)
            height = row + 0.13 * (2 - k)
            axes.plot(values, [height] * len(values), **{**ink(k), "linestyle": "-"})
    axes.set_yticks(range(len(sets)), sets, rotation=90, va="center")
    axes.set_ylim(-0.5, max(len(sets), 1) - 0.5)
    title = "(d) images that are no digits"
    name_axes(axes, title, "AUROC, one mark per network")
