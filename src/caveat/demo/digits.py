"""A handwritten 1, rotated step by step (paper 001, section 5.2 and fig. 4).

A LeNet with dropout 0.5 before the last layer, on scikit-learn's digits, enlarged from
8 × 8 pixels to 16 × 16 with a margin of 2. Unlike the paper's it has a ReLU after each
convolution.

Half of the images are for learning and a quarter, the validation images, for choosing:
architecture and settings were chosen by those of seed 0, and the digit that is turned
is one of them. The test images, the last quarter, are only scored.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from caveat.data import DigitImages, load_digits_images
from caveat.demo.table import Report
from caveat.demo.timing import timed
from caveat.demo.training import fit, layer
from caveat.evaluation import SoftmaxScatterDisplay
from caveat.noise import weight_decay_groups
from caveat.predictive import CategoricalPredictive
from caveat.sampling import MCDropout
from caveat.theory import Loss

DROP_RATE = 0.5
LENGTHSCALE = 0.5  # a weight decay of the last layer near the paper's 5e-4
ANGLES = range(0, 180, 15)  # degrees; twelve images, as in the paper
DIGIT = 1
LEARNING_RATE = 3e-3
N_DRAWS = 100
PLAIN_PASSES = 10


@dataclass(frozen=True)
class DigitsEffort:
    """How much work to put in."""

    n_steps: int


FULL = DigitsEffort(n_steps=500)
QUICK = DigitsEffort(n_steps=100)


@dataclass(frozen=True, eq=False)
class DigitsTask:
    """Images (rows, 1, 20, 20) and labels (rows,), split at random."""

    train: tuple[Tensor, Tensor]
    validation: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, digits: DigitImages, *, seed: int) -> "DigitsTask":
        images = torch.from_numpy(enlarge(digits.image))[:, None]
        labels = torch.from_numpy(digits.label)
        rest, validation = _apart(np.arange(len(digits)), digits.label, seed)
        train, test = _apart(rest, digits.label, seed)
        return cls(*((images[own], labels[own]) for own in (train, validation, test)))


def _apart(
    rows: NDArray[np.int64], label: NDArray[np.int64], seed: int
) -> list[NDArray[np.int64]]:
    """All but 450 rows, and these, with each digit as often as in the whole."""
    parts: list[NDArray[np.int64]] = train_test_split(
        rows, test_size=450, stratify=label[rows], random_state=seed
    )
    return parts


def enlarge(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """From 8 × 8 to 16 × 16 pixels, with a margin, so that turning cuts nothing off."""
    larger = ndimage.zoom(images, (1, 2, 2), order=1)
    return np.pad(larger, ((0, 0), (2, 2), (2, 2)))


def typical(task: DigitsTask, digit: int) -> Tensor:
    """The validation image nearest to the mean training image of a digit."""
    mean = task.train[0][task.train[1] == digit].mean(0)
    images = task.validation[0][task.validation[1] == digit]
    return images[(images - mean).square().sum((1, 2, 3)).argmin()]


def rotations(image: Tensor) -> Tensor:
    """One image (1, 20, 20) turned by each of ``ANGLES``, anticlockwise."""
    turned = [
        ndimage.rotate(image[0].numpy(), angle, reshape=False, order=1)
        for angle in ANGLES
    ]
    return torch.from_numpy(np.stack(turned))[:, None]


def run(folder: Path, effort: DigitsEffort, *, seed: int) -> Report:
    """Train, score on the test images, turn another image, and draw."""
    task = DigitsTask.of(load_digits_images(), seed=seed)
    net = train(task, effort, seed=seed)
    images, labels = task.test
    mc = MCDropout(net, seed=seed)
    draw = partial(mc.classify, images, n_draws=N_DRAWS)
    predictive, timing = timed(draw, net, images, plain_passes=PLAIN_PASSES)
    with torch.no_grad():
        standard = net(images).argmax(-1)
    turned = rotations(typical(task, DIGIT))
    path = folder / "digits.png"
    figure(turned, mc.classify(turned, n_draws=N_DRAWS)).savefig(path, dpi=200)
    return Report(
        task="digits, LeNet",
        unit="% wrong",
        error=_percent_wrong(predictive.label, labels),
        standard_error=_percent_wrong(standard, labels),
        log_likelihood=predictive.log_prob(labels).double().mean().item(),
        n_draws=predictive.n_draws,
        timing=timing,
        settings={
            "steps": effort.n_steps,
            "drop rate": DROP_RATE,
            "length-scale": LENGTHSCALE,
            "training images": len(task.train[1]),
            "validation % wrong": _percent_wrong(
                mc.classify(task.validation[0], n_draws=N_DRAWS).label,
                task.validation[1],
            ),
            "test images": len(labels),
        },
        figure=path,
    )


def train(task: DigitsTask, effort: DigitsEffort, *, seed: int) -> nn.Sequential:
    """The LeNet, trained."""
    generator = torch.Generator().manual_seed(seed)
    net = make_net(generator)
    groups = weight_decay_groups(
        net,
        precision=1.0,
        lengthscale=LENGTHSCALE,
        n_train=len(task.train[0]),
        loss=Loss.negative_log_likelihood(),
    )
    fit(
        net,
        groups,
        nn.CrossEntropyLoss(),
        task.train,
        generator=generator,
        n_steps=effort.n_steps,
        learning_rate=LEARNING_RATE,
        what="digits",
    )
    return net


def make_net(generator: torch.Generator) -> nn.Sequential:
    """20 and 50 filters, 500 units, one dropout before the last layer."""
    return nn.Sequential(
        layer(nn.Conv2d, 1, 20, 5, generator=generator),
        nn.ReLU(),
        nn.MaxPool2d(2),
        layer(nn.Conv2d, 20, 50, 5, generator=generator),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        layer(nn.Linear, 200, 500, generator=generator),
        nn.ReLU(),
        nn.Dropout(DROP_RATE),
        layer(nn.Linear, 500, 10, generator=generator),
    ).eval()


def top_classes(predictive: CategoricalPredictive) -> list[int]:
    """Up to four classes that are likely for some image, in order."""
    peak = predictive.probs.amax(0)
    likely = [c for c in peak.argsort(descending=True).tolist() if peak[c] > 0.1]
    return sorted(likely[:4])


def figure(images: Tensor, predictive: CategoricalPredictive) -> Figure:
    """Softmax inputs, softmax outputs and uncertainty above the images themselves."""
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
    _uncertainties(doubt, predictive)
    _images(strip, images, predictive)
    return drawn


def _uncertainties(ax: Axes, predictive: CategoricalPredictive) -> None:
    """Variation ratio and mutual information of each image."""
    place = np.arange(len(predictive))
    ratio, information = predictive.variation_ratio, predictive.mutual_information
    ax.plot(place, ratio, "o-", color="0.15", label="variation ratio (share)")
    ax.plot(place, information, "s--", color="0.55", label="mutual information (nats)")
    ax.set_ylim(bottom=0)
    ax.set_title("(c) uncertainty of the label", loc="left")
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


def _percent_wrong(predicted: Tensor, labels: Tensor) -> float:
    return 100 * (predicted != labels).double().mean().item()
