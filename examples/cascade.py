"""A small network answers what it is sure of, a convnet the rest, or a person
===========================================================================

Two cascades are made of the same networks. The first is to be as good as always using
the convnet, and saves most of its cost; the second is to make fewer errors than either
network can, for which a person sees a few images.

::

    python examples/cascade.py            # digits of 8 by 8 pixels, seconds
    python examples/cascade.py --mnist    # MNIST, a few minutes

Networks are trained on one part of the images, thresholds are chosen on a second, and
what is printed was measured on a third. Costs are seconds per image on this machine.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import caveat
from caveat.data.images import load_mnist
from caveat.decisions import Cascade, CascadeReport, Person, Stage
from caveat.papers.style import house_style, ink, line, name_axes, panels
from caveat.predictive import CategoricalPredictive

SECONDS_OF_A_PERSON = 3.0


@dataclass(frozen=True)
class Part:
    """Images (rows, 1, height, width) and the digits they show."""

    x: Tensor
    y: Tensor

    def __getitem__(self, rows: slice) -> "Part":
        return Part(self.x[rows], self.y[rows])


@dataclass(frozen=True)
class Task:
    """Images, networks for them, and the error rate that is asked for.

    Attributes
    ----------
    train, held_out, test : Part
        To train on, to choose thresholds on, to report on.
    small, convnet : nn.Module
        Untrained, with dropout.
    n_steps : int
        Of training.
    risk : float
        The error rate that the cascade with a person is to keep.
    """

    train: Part
    held_out: Part
    test: Part
    small: nn.Module
    convnet: nn.Module
    n_steps: int
    risk: float


def digits() -> Task:
    """1797 small digits that come with scikit-learn."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    pixels = torch.from_numpy(x[order]).float().view(-1, 1, 8, 8) / 16
    images = Part(pixels, torch.from_numpy(y[order]).long())
    return Task(
        images[:697],
        images[697:1247],
        images[1247:],
        perceptron(64, 16),
        convolutional(3, 32 * 9),
        n_steps=600,
        risk=0.01,
    )


def mnist() -> Task:
    """70,000 digits; needs the files of MNIST or a connection."""
    found = load_mnist()
    train, test = (_part(part.image, part.label) for part in (found.train, found.test))
    return Task(
        train[:50_000],
        train[50_000:],
        test,
        perceptron(784, 32),
        convolutional(5, 32 * 16),
        n_steps=2500,
        risk=0.005,
    )


def _part(image: np.ndarray, label: np.ndarray) -> Part:
    pixels = torch.from_numpy(image[:, None]).float() / 255
    return Part(pixels, torch.from_numpy(label).long())


def perceptron(n_pixels: int, width: int) -> nn.Sequential:
    """One hidden layer with dropout."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(n_pixels, width),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(width, 10),
    )


def convolutional(kernel: int, n_features: int) -> nn.Sequential:
    """Two convolutions, dropout, and a hidden layer with dropout."""
    pad = 2 if kernel == 3 else 0
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel, padding=pad), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(16, 32, kernel, padding=pad), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Dropout(0.25), nn.Linear(n_features, 128), nn.ReLU(),
        nn.Dropout(0.5), nn.Linear(128, 10),
    )  # fmt: skip


def train(net: nn.Module, part: Part, n_steps: int) -> None:
    """Steps of Adam on batches of 64."""
    generator = torch.Generator().manual_seed(0)
    adam = torch.optim.Adam(net.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(adam, 3e-3, total_steps=n_steps)
    for _ in range(n_steps):
        rows = torch.randint(len(part.y), (64,), generator=generator)
        adam.zero_grad()
        cross_entropy(net(part.x[rows]), part.y[rows]).backward()
        adam.step()
        schedule.step()


def stage(net: nn.Module, name: str) -> Stage:
    """A network as a stage: 20 draws, and one minus the largest probability."""
    mc = caveat.MCDropout(net, seed=0)

    def classify(x: Tensor) -> CategoricalPredictive:
        return mc.classify(
            x, n_draws=20, batch_size=500, keep_draws=False, progress=False
        )

    return Stage(classify, name=name)


def trained_stages(task: Task) -> tuple[Stage, Stage]:
    """The two networks, trained."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for net in (task.small, task.convnet):
            for layer in net:  # type: ignore[attr-defined]
                getattr(layer, "reset_parameters", lambda: None)()
            train(net, task.train, task.n_steps)
    return stage(task.small.eval(), "small"), stage(task.convnet.eval(), "convnet")


def main(argv: Sequence[str] | None = None) -> None:
    """Train, choose thresholds, report, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mnist", action="store_true", help="28 by 28 pixels")
    parser.add_argument("--output", type=Path, default=Path("outputs"))
    options = parser.parse_args(argv)
    task = mnist() if options.mnist else digits()
    small, convnet = trained_stages(task)
    held_out, test = task.held_out, task.test

    pair = Cascade([small, convnet])
    convnet_risk = Cascade([small, convnet], thresholds=[-np.inf]).report(
        held_out.x, held_out.y
    )
    pair = pair.calibrate(held_out.x, held_out.y, risk=convnet_risk.slow_risk)
    on_test = pair.report(test.x, test.y)
    print(f"As good as the convnet on {len(held_out.y)} held-out images; on test:")
    print(f"{on_test}\n")

    person = Person(SECONDS_OF_A_PERSON)
    trio = Cascade([small, convnet, person])
    trio = trio.calibrate(held_out.x, held_out.y, risk=task.risk)
    print(f"At most {task.risk:.1%} errors on the held-out images; on test:")
    print(f"{trio.report(test.x, test.y)}\n")
    answer = trio.run(test.x)
    print(
        f"Images that each stage saw: {answer.n_run}; for the person: "
        f"{len(answer.for_person)}."
    )
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "cascade.png"
    draw(pair, held_out, on_test).savefig(path)
    print(path)


@house_style()
def draw(pair: Cascade, held_out: Part, on_test: CascadeReport) -> Figure:
    """The best error rate for each cost, and the cascade that was chosen."""
    frontier = pair.frontier(held_out.x, held_out.y)
    assert pair.calibration is not None
    figure, grid = panels(height=2.8)
    axes = grid[0, 0]
    milliseconds = 1e3 * frontier.cost
    label = "cascade, held-out images"
    axes.step(milliseconds, frontier.risk, where="post", **line(0), label=label)
    shown = [
        ("chosen, test images", on_test.cost, on_test.risk),
        ("always convnet, test images", on_test.slow_cost, on_test.slow_risk),
    ]
    for k, (name, cost, risk) in enumerate(shown, 1):
        point = ink(k) | {"linestyle": "", "markersize": 6}
        axes.plot(1e3 * cost, risk, **point, label=name)
    name_axes(axes, "Small network, then convnet", "ms per image", "error rate")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.legend()
    return figure


if __name__ == "__main__":
    main()
