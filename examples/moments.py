"""Uncertainty without sampling: moments carried through a network, beside its draws
=================================================================================

A network with dropout learns a curve with a gap in its data. Its predictive standard
deviation is found by 2,000 draws, and by one pass of ``MCDropout.moments``, with the
units of a layer taken as independent and with their correlations.

::

    python examples/moments.py [figure.png] [--quick]
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

import caveat
from caveat.papers.style import house_style, line, name_axes, panels

GRID = torch.linspace(-2.0, 2.0, 201)[:, None]


class Curve(NamedTuple):
    """Mean and standard deviation of the network along the grid."""

    mean: Tensor
    std: Tensor


def main(path: Path, quick: bool) -> None:
    """Train, predict in three ways, write the figure and say how far apart they are."""
    x, y = observations()
    net = trained(x, y, steps=30 if quick else 2000)
    curves = predictions(net, n_draws=50 if quick else 2000)
    path.parent.mkdir(parents=True, exist_ok=True)
    draw(path, x, y, curves)
    for name in ("independent", "correlated"):
        ratio = (curves[name].std / curves["draws"].std).quantile(
            torch.tensor([0.05, 0.5, 0.95])
        )
        low, middle, high = ratio.tolist()
        print(f"{name}: sd {middle:.2f} times that of draws ({low:.2f} to {high:.2f})")
    print(path)


def observations() -> tuple[Tensor, Tensor]:
    """Two pieces of a noisy sine with a gap between them."""
    generator = torch.Generator().manual_seed(0)
    x = torch.cat([torch.linspace(-1.4, -0.4, 60), torch.linspace(0.4, 1.4, 60)])
    y = torch.sin(3.0 * x) + 0.1 * torch.randn(len(x), generator=generator)
    return x[:, None], y[:, None]


def trained(x: Tensor, y: Tensor, *, steps: int) -> nn.Module:
    """1-64-64-1 with dropout 0.1 before all layers but the first."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Linear(1, 64),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(64, 64),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(64, 1),
        )
        optimiser = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-5)
        for _ in range(steps):
            optimiser.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            optimiser.step()
    return net.eval()


def predictions(net: nn.Module, *, n_draws: int) -> dict[str, Curve]:
    """By draws, and by moments in two ways."""
    mc = caveat.MCDropout(net, seed=0)
    sampled = mc.regress(GRID, n_draws=n_draws, precision=1.0)
    curves = {
        "draws": Curve(sampled.mean[:, 0], sampled.epistemic_variance[:, 0].sqrt())
    }
    for name, correlated in {"independent": False, "correlated": True}.items():
        moments = mc.moments(GRID, correlated=correlated)
        curves[name] = Curve(moments.mean[:, 0], moments.std[:, 0])
    return curves


@house_style()
def draw(path: Path, x: Tensor, y: Tensor, curves: dict[str, Curve]) -> None:
    """The bands beside each other, and the standard deviations."""
    figure, grid = panels(1, 2, height=2.3)
    left, right = grid[0]
    _bands(left, x, y, curves)
    names = {
        "draws": "draws",
        "independent": "moments, independent units",
        "correlated": "moments, correlated units",
    }
    for number, (name, label) in enumerate(names.items()):
        right.plot(GRID[:, 0], curves[name].std, label=label, **line(number))
    name_axes(right, "standard deviation", "x")
    right.set_ylim(0, 1.5 * right.get_ylim()[1])
    right.legend(loc="upper center")
    figure.savefig(path)


def _bands(ax: Axes, x: Tensor, y: Tensor, curves: dict[str, Curve]) -> None:
    mean, std = curves["draws"]
    ax.fill_between(
        GRID[:, 0], mean - 2 * std, mean + 2 * std, color="0.85", linewidth=0
    )
    ax.plot(GRID[:, 0], mean, **line(0))
    for number, name in enumerate(("independent", "correlated"), start=1):
        mean, std = curves[name]
        for side in (-2, 2):
            ax.plot(GRID[:, 0], mean + side * std, linewidth=0.9, **line(number))
    ax.plot(x[:, 0], y[:, 0], ".", color="black", markersize=2)
    name_axes(ax, "mean ± 2 sd", "x", "f(x)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", default="outputs/moments.png", type=Path)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    options = parser.parse_args()
    main(options.path, options.quick)
