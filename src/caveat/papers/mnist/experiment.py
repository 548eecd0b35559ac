"""The page of figure 4, its drawing, and what the uncertainties are good for."""

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from operator import eq, sub
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from caveat.papers.experiment import Experiment
from caveat.papers.lenet import SOLVER, NetJob, NetStore, images_of, load_images
from caveat.papers.mnist.measures import (
    DIGIT,
    SHARES,
    SHOWN,
    STEPS,
    DrawnLogits,
    Number,
    Subject,
    angles,
    passes,
    rotations,
    typical,
)
from caveat.papers.mnist.scores import BY_DRAWS, BY_SOFTMAX, SCORES
from caveat.papers.page import Claim, Part, bullets, flow, holds, markdown_table, table
from caveat.papers.records import read_records, write_records
from caveat.papers.style import WIDTH, ink, legend_below, name_axes, panels

N_SEEDS = 5
PAPER_CLASSES = (1, 1, 1, 1, 1, 5, 5, 7, 7, 7, 7, 7)
ERROR_BOUND = 0.01
CERTAIN, UNNOTICED, DOUBTFUL, WHOLE_SPACE = 0.02, 0.05, 0.3, 0.9

_TURNING = f"rotation by {SHOWN}"
_WORDS = flow("""The input is classified as digit 5 for images 6-7, even though model
    uncertainty is extremely large""")
_OTHER_WORDS = flow("""; "if the uncertainty envelope of a class is far from that of
    other classes' (for example the left most image) then the input is classified with
    high confidence"; if it intersects, "the softmax output uncertainty can be as large
    as the entire space"; "One would expect the model to ask an external annotator for a
    label". It does not say what its test error is, which 1 was turned, or how far. Its
    text lists 11 classes for 12 images; the list below is that of its first version,
    which has 12.""")


class Numbers:
    """Numbers to be looked up."""

    def __init__(self, numbers: Sequence[Number]) -> None:
        self.seeds = sorted({number.seed for number in numbers})
        self._values: dict[tuple[str, str, str], list[float]] = {}
        for n in numbers:
            self._values.setdefault((n.part, n.case, n.name), []).append(n.value)

    def cases(self, part: str) -> list[str]:
        """The rows of a table, in order."""
        return list(dict.fromkeys(case for p, case, _ in self._values if p == part))

    def values(self, part: str, case: str, name: str) -> list[float]:
        """One value per network."""
        return self._values[part, case, name]

    def mean(self, part: str, case: str, name: str) -> float:
        """The average over networks."""
        return float(np.mean(self.values(part, case, name)))

    def turning(self, name: str, network: int = 0) -> list[float]:
        """Of the images that are shown, by one network."""
        return [self.values(_TURNING, c, name)[network] for c in self.cases(_TURNING)]

    def each_turning(self, name: str) -> list[list[float]]:
        """The same of all networks."""
        return [self.turning(name, network) for network in range(len(self.seeds))]

    def alike(self, step: int) -> list[int]:
        """Images with the paper's class, by each network."""
        each = (self.classes(step, network) for network in range(len(self.seeds)))
        return [sum(map(eq, found, PAPER_CLASSES)) for found in each]

    def classes(self, step: int, network: int) -> list[int]:
        """Of the twelve images, by one network."""
        part = f"rotation by {step}"
        found = [self.values(part, case, "class") for case in self.cases(part)]
        return [int(values[network]) for values in found]

    def wins(self, part: str, case: str, name: str) -> int:
        """Networks in which a score of draws beats both of the plain softmax."""
        plain = [self.values(part, case, other) for other in BY_SOFTMAX]
        own = self.values(part, case, name)
        return sum(mine > max(rest) for mine, *rest in zip(own, *plain, strict=True))


def _test_row(numbers: Numbers, way: str) -> dict[str, str]:
    errors = [100 * v for v in numbers.values("test", way, "error")]
    likelihoods = numbers.values("test", way, "log-likelihood")
    return {
        "prediction": way,
        "error %, each network": _list(errors, 2),
        "mean log p": _list(likelihoods, 4),
    }


def _test_verdicts(numbers: Numbers, data: str) -> Iterator[str]:
    ways = numbers.cases("test")
    worst = max(v for way in ways for v in numbers.values("test", way, "error"))
    first, second = (numbers.mean("test", way, "log-likelihood") for way in ways)
    yield f"""Error of at most {ERROR_BOUND:.1%} on {data}:
        {holds(worst <= ERROR_BOUND)} (largest {worst:.2%})."""
    yield f"""MC dropout has the larger log-likelihood: {holds(first > second)}
        ({first:.4f}, averaged weights {second:.4f})."""


def _turning_rows(numbers: Numbers) -> Iterator[dict[str, str]]:
    low, high = numbers.turning("lowest drawn"), numbers.turning("highest drawn")
    for k, paper in enumerate(PAPER_CLASSES):
        plain = 1.0 - numbers.turning(BY_SOFTMAX[0])[k]
        yield {
            "angle": f"{angles(SHOWN)[k]}°",
            "class": f"{numbers.turning('class')[k]:.0f}",
            "paper": str(paper),
            "mean p": f"{numbers.turning('probability')[k]:.2f}",
            "drawn p, lowest to highest": f"{low[k]:.2f} to {high[k]:.2f}",
            **{name: f"{numbers.turning(name)[k]:.2f}" for name in BY_DRAWS},
            "plain softmax": f"{numbers.turning('class, standard')[k]:.0f}, "
            f"{plain:.2f}",
        }


def _sequences(numbers: Numbers) -> Iterator[tuple[str, ...]]:
    for step in STEPS:
        for place, seed in enumerate(numbers.seeds):
            found, alike = numbers.classes(step, place), numbers.alike(step)[place]
            turn = f"{abs(step)}° {'clockwise' if step < 0 else 'anticlockwise'}"
            yield turn, str(seed), " ".join(map(str, found)), f"{alike} of 12"
    yield "paper", "", " ".join(map(str, PAPER_CLASSES)), ""


def _turning_verdicts(numbers: Numbers) -> Iterator[str]:
    ratios = numbers.each_turning("variation ratio")
    first, largest = [own[0] for own in ratios], [max(own) for own in ratios]
    yield f"""The first image is classified with high confidence (variation ratio below
        {CERTAIN}): {holds(max(first) < CERTAIN)} ({_span(first)})."""
    yield f"""Some image is highly uncertain (variation ratio above {DOUBTFUL}):
        {holds(min(largest) > DOUBTFUL)} (largest {_span(largest)})."""
    low, high = map(numbers.each_turning, ("lowest drawn", "highest drawn"))
    widest = [max(map(sub, *own)) for own in zip(high, low, strict=True)]
    yield f""""As large as the entire space" (drawn probabilities of the class more than
        {WHOLE_SPACE} apart): {holds(min(widest) > WHOLE_SPACE)} (widest
        {_span(widest)})."""
    yield _wrong_but_sure(numbers)


def _wrong_but_sure(numbers: Numbers) -> str:
    """How many images are taken for another digit without any doubt."""
    turned = [(f"rotation by {s}", str(angle)) for s in STEPS for angle in angles(s)]
    labels = [v for place in turned for v in numbers.values(*place, "class")]
    doubts = [v for place in turned for v in numbers.values(*place, "variation ratio")]
    other = [v for label, v in zip(labels, doubts, strict=True) if label != DIGIT]
    sure = sum(doubt < UNNOTICED for doubt in other)
    return f"""Of the {len(labels)} turned images of all steps and networks {len(other)}
        are taken for another digit than {DIGIT}; {sure} of these have a variation ratio
        below {UNNOTICED}."""


def _ones_row(numbers: Numbers, case: str) -> dict[str, str]:
    names = ("classed as 1", "variation ratio", "mutual information", BY_SOFTMAX[0])
    means = {name: numbers.mean("all ones", case, name) for name in names}
    return {"angle": f"{case}°", **{name: f"{m:.2f}" for name, m in means.items()}}


def _caught_row(numbers: Numbers, share: float) -> dict[str, str]:
    caught = {name: numbers.values("set aside", f"{share:g}", name) for name in SCORES}
    shown = {f"{n}, %": _list([100 * v for v in own], 0) for n, own in caught.items()}
    return {"set aside": f"{share:.1%}", **shown}


def _strange_row(numbers: Numbers, data: str) -> dict[str, str]:
    values = {name: numbers.values("AUROC", data, name) for name in SCORES}
    return {"data": data, **{name: _list(own, 4) for name, own in values.items()}}


def _contest(numbers: Numbers, part: str, case: str) -> str:
    total = len(numbers.seeds)
    found = [f"{s} in {numbers.wins(part, case, s)} of {total}" for s in BY_DRAWS]
    return f"networks in which it beats both plain softmax scores: {', '.join(found)}."


def _span(values: Sequence[float]) -> str:
    """The values of all networks; the verdict is that of the worst."""
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high} by network"


def _list(values: Sequence[float], digits: int) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


_TOP = 3  # classes shown of each image, as in the paper
_SPREAD = 0.3  # width of the columns of points of an image
_LAYOUT = "A;B;I"  # inputs, outputs, images
_HEIGHTS = (3.0, 2.4, 0.75)


def top_classes(logits: Tensor) -> list[list[int]]:
    """The three classes with the largest mean input of each image, in their order.

    From logits (draws, images, classes).
    """
    best = logits.mean(0).topk(_TOP, -1).indices
    return [sorted(own) for own in best.tolist()]


def _scatter(axes: Axes, values: Tensor, shown: Sequence[Sequence[int]]) -> None:
    n_draws, n_images, _ = values.shape
    jitter = np.linspace(-0.07, 0.07, n_draws)
    columns = np.linspace(-_SPREAD, _SPREAD, _TOP)
    for k, c in enumerate(sorted({c for own in shown for c in own})):
        images = [image for image, own in enumerate(shown) if c in own]
        place = np.array([image + columns[shown[image].index(c)] for image in images])
        style = {**ink(k), "linestyle": "none", "markersize": 2.0}
        drawn = values[:, images, c].numpy().ravel()
        across = (place + jitter[:, None]).ravel()
        axes.plot(across, drawn, markeredgewidth=0.4, label=str(c), **style)
    axes.set_xlim(-0.6, n_images - 0.4)
    axes.set_xticks(range(n_images), [])
    axes.tick_params(axis="x", length=0)


def _images(axes: Axes, images: Tensor, numbers: Numbers) -> None:
    for place, one in enumerate(images.numpy()):
        extent = (place - 0.46, place + 0.46, 0.0, 1.0)
        axes.imshow(one, extent=extent, aspect="auto", vmin=0, vmax=255)
    found = numbers.turning("class"), numbers.turning("variation ratio")
    names = [
        f"{angle}°\n{label:.0f}\n{ratio:.2f}"
        for angle, label, ratio in zip(angles(SHOWN), *found, strict=True)
    ]
    axes.set_xticks(range(len(images)), names)
    axes.set_yticks([])
    axes.set_xlim(-0.6, len(images) - 0.4)
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
        axes, "(a) test errors caught", "% of images set aside", "% of errors caught"
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
    title = "(b) images that are no digits"
    name_axes(axes, title, "AUROC, one mark per network")


@dataclass(frozen=True)
class Mnist(Experiment[int, Number]):
    """A LeNet and a turning digit; a job is a network, by its seed.

    The first one also leaves ``mnist_rotation.csv``, the passes that are drawn.
    """

    name = "mnist"
    title = "MNIST: a LeNet asked about a digit that turns (paper 001, figure 4)"
    record = Number

    @property
    def n_steps(self) -> int:
        """Of training."""
        return 60 if self.quick else 10_000

    @property
    def n_draws(self) -> int:
        """T."""
        return 20 if self.quick else 100

    @property
    def rotation(self) -> Path:
        """The file of the passes that are drawn."""
        return self.path("csv").with_stem(f"{self.path('csv').stem}_rotation")

    def jobs(self, records: Sequence[Number]) -> range:
        return range(1 if self.quick else N_SEEDS)

    def key(self, record: Number) -> int:
        return record.seed

    def is_done(self, job: int, known: Collection[Hashable]) -> bool:
        return super().is_done(job, known) and (job > 0 or self.rotation.exists())

    def run(self, job: int) -> list[Number]:
        images = load_images()
        store = NetStore(self.folder / "lenet", images.name)
        net = store.get(NetJob("end", self.n_steps, job))
        if job == 0:
            write_records(self.rotation, list(passes(net, images, self.n_draws)))
        subject = Subject(net, images, self.n_draws, 100 if self.quick else None)
        return [Number(job, *row) for row in subject.measure()]

    def page(self, records: Sequence[Number]) -> Iterator[Part]:
        numbers, stored = Numbers(records), read_records(self.rotation, DrawnLogits)
        images = images_of({one.data for one in stored})
        yield Claim(_WORDS, end=_OTHER_WORDS)
        yield flow(f"""{images.name}, {len(images.train):,} images to train on. The
            released LeNet (20-50-500-10, dropout 0.5 after the ReLU) and solver:
            {SOLVER}, rate of biases times {SOLVER.bias_rate:g}, pixels times 1/256.
            {self.n_steps:,} steps (`lenet_dropout_solver_10K` of the released files has
            10,000, the text 1,000,000). Networks trained: {len(numbers.seeds)}, with
            weights, order of images and masks of their own. T = {self.n_draws} passes,
            one mask per pass for all images. No setting was chosen here; images come in
            a new order in each epoch, unlike in Caffe.""")
        yield "## Test images"
        yield table(_test_row(numbers, way) for way in numbers.cases("test"))
        yield bullets(_test_verdicts(numbers, images.name))
        yield "## The digit that turns"
        yield flow(f"""The test image of a {DIGIT} nearest to the mean training image of
            a {DIGIT}. As the paper gives no angles, six steps were tried; table and
            figure show the one whose classes are most like the paper's, {SHOWN}°
            anticlockwise, and the first network. The figure has the {_TOP} classes with
            the largest mean softmax input of each image, as the paper's.""")
        yield table(_turning_rows(numbers))
        yield "Classes by all steps and networks:"
        head = ("step", "network", "classes", "as in the paper")
        yield markdown_table(head, _sequences(numbers))
        yield bullets(_turning_verdicts(numbers))
        yield "All test images of a 1, turned (averages; - is clockwise):"
        yield table(_ones_row(numbers, case) for case in numbers.cases("all ones"))
        yield "## Errors caught by setting the most uncertain images aside"
        file = self.path("png", "uses").name
        yield f"This and the next are not in the paper; drawn in [{file}]({file})."
        yield table(_caught_row(numbers, share) for share in SHARES)
        yield "At 2 %: " + _contest(numbers, "set aside", "0.02")
        yield "## Images that are no digits: AUROC against the test digits"
        if sets := numbers.cases("AUROC"):
            yield table(_strange_row(numbers, data) for data in sets)
            yield bullets(f"{d}: {_contest(numbers, 'AUROC', d)}" for d in sets)
        else:
            yield "The other images are absent: see `caveat data list`."

    def in_brief(self, records: Sequence[Number]) -> tuple[str, str]:
        numbers = Numbers(records)
        alike, ratios = numbers.alike(SHOWN), numbers.turning("variation ratio")
        paper = """a 1 that turns is taken for a 5 and then a 7, with an uncertainty
            that can fill the whole space"""
        others = f" ({min(alike)} to {max(alike)} by seed)" if alike[1:] else ""
        ours = f"""{alike[0]} of its 12 classes are found again{others}, the variation
            ratio rises from {ratios[0]:.2f} to {max(ratios):.2f}"""
        return paper, ours

    def figure(self, records: Sequence[Number]) -> Figure:
        """As figure 4."""
        figure = Figure(figsize=(WIDTH, 4.7), dpi=200, layout="constrained")
        axes = figure.subplot_mosaic(_LAYOUT, height_ratios=_HEIGHTS)
        numbers, stored = Numbers(records), read_records(self.rotation, DrawnLogits)
        flat = [[float(v) for v in one.logits.split()] for one in stored]
        logits = torch.tensor(flat).double().unflatten(0, (-1, len(angles(SHOWN))))
        probs = logits.softmax(-1)
        shown = top_classes(logits)
        _scatter(axes["A"], logits, shown)
        _scatter(axes["B"], probs, shown)
        name_axes(axes["A"], f"(a) softmax input, {len(logits)} passes", y="logit")
        title = f"(b) softmax output, {len(logits)} passes"
        name_axes(axes["B"], title, y="probability")
        axes["A"].legend(
            title="class", loc="center left", bbox_to_anchor=(1.0, 0.5),
            handletextpad=0.1, markerscale=2,
        )  # fmt: skip
        image = typical(images_of({one.data for one in stored}))
        _images(axes["I"], rotations(image, SHOWN), numbers)
        return figure

    def further_figures(self, records: Sequence[Number]) -> dict[str, Figure]:
        """What the paper does not have: errors caught, images that are no digits."""
        numbers = Numbers(records)
        figure, grid = panels(1, 2, height=2.9)
        _caught(grid[0, 0], numbers)
        _strange(grid[0, 1], numbers)
        legend_below(figure, grid[0, 0], ncols=3)
        return {"uses": figure}
