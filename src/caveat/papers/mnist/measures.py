"""All numbers about one trained network: turned digits, errors, strange images."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy import ndimage
from torch import Tensor, nn

from caveat.data import LabelledImages, load_fashion_sample, load_notmnist
from caveat.errors import DataError
from caveat.papers.lenet import Images, drawn_logits
from caveat.papers.mnist.scores import SCORES, Answers, auroc, share_caught

DIGIT = 1
N_TURNED = 12
STEPS = (-15, -10, -5, 5, 10, 15)  # degrees per image; anticlockwise is positive
SHOWN = 10  # the step of the figure: of these the most like the paper's classes
SHARES = (0.005, 0.01, 0.02, 0.05, 0.1)
STRANGE: dict[str, Callable[[], LabelledImages]] = {
    "notMNIST": load_notmnist,
    "Fashion-MNIST": load_fashion_sample,
}

Row = tuple[str, str, str, float]  # part, case, name, value


@dataclass(frozen=True)
class Number:
    """One number about one network."""

    seed: int  # of the network
    part: str  # which table it belongs to
    case: str  # the row of the table: a way to predict, an angle, a share, a data set
    name: str  # what was measured
    value: float


@dataclass(frozen=True)
class DrawnLogits:
    """One pass for one of the images that are shown."""

    data: str  # name of the images
    draw: int
    angle: int
    logits: str  # of the ten classes, with spaces between them


def angles(step: int) -> list[int]:
    """The angles of the twelve images."""
    return [k * step for k in range(N_TURNED)]


def typical(images: Images, digit: int = DIGIT) -> Tensor:
    """The test image nearest to the mean training image of a digit; (28, 28)."""
    mean = images.train.image[images.train.label == digit].float().mean(0)
    candidates = images.test.image[images.test.label == digit]
    distance = (candidates.float() - mean).square().sum((1, 2))
    return candidates[distance.argmin()]


def turned(image: Tensor, angle: float) -> Tensor:
    """Images (rows, 28, 28) of bytes, turned anticlockwise by so many degrees."""
    found = ndimage.rotate(
        image.numpy().astype(np.float32), angle, axes=(2, 1), reshape=False, order=1
    )
    return torch.from_numpy(np.rint(found).clip(0, 255).astype(np.uint8))


def rotations(image: Tensor, step: int) -> Tensor:
    """One image (28, 28) at all angles; shape (12, 28, 28)."""
    return torch.cat([turned(image[None], angle) for angle in angles(step)])


def passes(net: nn.Sequential, images: Images, n_draws: int) -> Iterator[DrawnLogits]:
    """Draw by draw, the logits of the images that are shown."""
    shown = rotations(typical(images), SHOWN)
    for draw, one in enumerate(drawn_logits(net, shown, n_draws=n_draws).tolist()):
        for angle, logits in zip(angles(SHOWN), one, strict=True):
            yield DrawnLogits(
                images.name, draw, angle, " ".join(f"{v:.6g}" for v in logits)
            )


@dataclass(frozen=True, eq=False)
class Subject:
    """A network and how closely to look at it."""

    net: nn.Sequential
    images: Images
    n_draws: int
    n_images: int | None  # of each data set; None for all

    def measure(self) -> Iterator[Row]:
        """Test error, rotations, errors caught, and images that are no digits."""
        test = self.images.test.first(self.n_images)
        known = self._ask(test.image)
        yield from _test(known, test.label)
        yield from self._rotation()
        yield from self._all_ones()
        yield from _set_aside(known, test.label)
        yield from self._strange(known)

    def _ask(self, image: Tensor, *, keep: bool = False) -> Answers:
        return Answers.of(self.net, image, n_draws=self.n_draws, keep=keep)

    def _rotation(self) -> Iterator[Row]:
        image = typical(self.images)
        for step in STEPS:
            answers = self._ask(rotations(image, step), keep=True)
            for k, angle in enumerate(angles(step)):
                for name, value in _one_image(answers, k):
                    yield f"rotation by {step}", str(angle), name, value

    def _all_ones(self) -> Iterator[Row]:
        """Every 1 of the test images, turned both ways."""
        test = self.images.test
        ones = test.image[test.label == DIGIT][: self.n_images]
        for angle in sorted({a for step in (-15, 15) for a in angles(step)}):
            answers = self._ask(turned(ones, angle))
            is_one = answers.predictive.label == DIGIT
            yield "all ones", str(angle), "classed as 1", _mean(is_one)
            for name in SCORES:
                yield "all ones", str(angle), name, _mean(answers.scores[name])

    def _strange(self, known: Answers) -> Iterator[Row]:
        # every so many of 10,000 images that are sorted by class
        thinned = slice(None, None, 10_000 // self.n_images if self.n_images else 1)
        for data, load in STRANGE.items():
            try:
                image = torch.from_numpy(load().image)[thinned]
            except DataError:
                continue
            strange = self._ask(image)
            for name in SCORES:
                value = auroc(known.scores[name], strange.scores[name])
                yield "AUROC", data, name, value
                yield "mean score", data, name, _mean(strange.scores[name])


def _test(known: Answers, label: Tensor) -> Iterator[Row]:
    for way, found in known.label.items():
        yield "test", way, "error", _mean(found != label)
    standard = known.softmax.gather(-1, label[:, None]).mean()
    yield "test", "MC", "log-likelihood", _mean(known.predictive.log_prob(label))
    yield "test", "standard", "log-likelihood", float(standard)


def _one_image(answers: Answers, k: int) -> Iterator[tuple[str, float]]:
    predictive = answers.predictive
    label = int(predictive.label[k])
    drawn = predictive.draws[:, k].softmax(-1)[:, label]
    yield "class", label
    yield "class, standard", int(answers.softmax[k].argmax())
    yield "probability", float(predictive.probs[k, label])
    yield "lowest drawn", float(drawn.min())
    yield "highest drawn", float(drawn.max())
    for name in SCORES:
        yield name, float(answers.scores[name][k])


def _set_aside(known: Answers, label: Tensor) -> Iterator[Row]:
    wrong = known.wrong(label)
    for share in SHARES:
        for name, score in known.scores.items():
            caught = share_caught(score, wrong[name], share)
            yield "set aside", f"{share:g}", name, caught


def _mean(values: Tensor) -> float:
    return float(values.double().mean())
