"""All numbers about one trained network."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from caveat.data import LabelledImages, load_fashion_sample, load_notmnist
from caveat.errors import DataError
from caveat.papers.lenet import Images, NetJob, Store, load_images
from caveat.papers.mnist.records import Number
from caveat.papers.mnist.rotation import (
    DIGIT,
    STEPS,
    angles,
    rotations,
    turned,
    typical,
)
from caveat.papers.mnist.scores import SCORES, Answers, auroc, share_caught

SHARES = (0.005, 0.01, 0.02, 0.05, 0.1)
STRANGE: dict[str, Callable[[], LabelledImages]] = {
    "notMNIST": load_notmnist,
    "Fashion-MNIST": load_fashion_sample,
}

Row = tuple[str, str, str, float]  # part, case, name, value


@dataclass(frozen=True)
class Measuring:
    """A network and how closely to look at it.

    Attributes
    ----------
    store : Store
        Where it is.
    net : NetJob
    n_draws : int
    n_images : int or None
        Of each data set; None for all.
    """

    store: Store
    net: NetJob
    n_draws: int
    n_images: int | None


def measure(job: Measuring) -> list[Number]:
    """Test error, rotations, errors caught, and images that are no digits."""
    images, net = load_images(), job.store.load(job.net)
    test = images.test.first(job.n_images)
    known = Answers.of(net, test.image, n_draws=job.n_draws)
    rows = [
        *_test(known, test.label),
        *_rotation(net, images, job.n_draws),
        *_all_ones(net, images, job),
        *_set_aside(known, test.label),
        *_strange(net, known, job),
    ]
    return [Number(job.net.seed, *row) for row in rows]


def _test(known: Answers, label: Tensor) -> Iterator[Row]:
    for way, found in known.label.items():
        yield "test", way, "error", _share(found != label)
    standard = known.softmax.gather(-1, label[:, None]).mean()
    yield "test", "MC", "log-likelihood", _mean(known.predictive.log_prob(label))
    yield "test", "standard", "log-likelihood", float(standard)


def _rotation(net: nn.Sequential, images: Images, n_draws: int) -> Iterator[Row]:
    image = typical(images)
    for step in STEPS:
        answers = Answers.of(net, rotations(image, step), n_draws=n_draws, keep=True)
        part = f"rotation by {step}"
        for k, angle in enumerate(angles(step)):
            for name, value in _one_image(answers, k):
                yield part, str(angle), name, value


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


def _all_ones(net: nn.Sequential, images: Images, job: Measuring) -> Iterator[Row]:
    """Every 1 of the test images, turned both ways."""
    ones = images.test.image[images.test.label == DIGIT][: job.n_images]
    for angle in sorted({a for step in (-15, 15) for a in angles(step)}):
        answers = Answers.of(net, turned(ones, angle), n_draws=job.n_draws)
        is_one = answers.predictive.label == DIGIT
        yield "all ones", str(angle), "classed as 1", _share(is_one)
        for name in SCORES:
            yield "all ones", str(angle), name, _mean(answers.scores[name])


def _set_aside(known: Answers, label: Tensor) -> Iterator[Row]:
    wrong = known.wrong(label)
    for share in SHARES:
        for name, score in known.scores.items():
            caught = share_caught(score, wrong[name], share)
            yield "set aside", f"{share:g}", name, caught


def _strange(net: nn.Sequential, known: Answers, job: Measuring) -> Iterator[Row]:
    for data, load in STRANGE.items():
        try:
            image = torch.from_numpy(load().image)[_thinned(job.n_images)]
        except DataError:
            continue
        strange = Answers.of(net, image, n_draws=job.n_draws)
        for name in SCORES:
            value = auroc(known.scores[name], strange.scores[name])
            yield "AUROC", data, name, value
            yield "mean score", data, name, _mean(strange.scores[name])


def _thinned(n_images: int | None) -> slice:
    """Every so many of 10,000 images that are sorted by class."""
    return slice(None, None, 10_000 // n_images if n_images else 1)


def _share(found: Tensor) -> float:
    return _mean(found.double())


def _mean(values: Tensor) -> float:
    return float(values.double().mean())
