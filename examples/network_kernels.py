"""The non-linearity and the regularisation of a network choose its prior
======================================================================

Draws from the Gaussian processes that wide networks with one hidden layer tend to, for
three non-linearities and two length-scales (a longer one belongs to a stronger weight
decay), before and after nine observations. Outputs are scaled to variance 1 at x = 0.

::

    python examples/network_kernels.py [figure.png]
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel

from caveat.theory import NetworkKernel

Array = NDArray[np.float64]

NAMES = {"relu": "ReLU", "tanh": "tanh", "uniform_phase": "cos, uniform phase"}
LONG, SHORT = 1.0, 1 / 3
NOISE_VARIANCE = 0.05**2
GRID = np.linspace(-4, 4, 321)[:, None]
SEED = 4
# Told apart without colour
LINES = ({"ls": "-"}, {"ls": (0, (5, 1.5))}, {"ls": "-."}, {"ls": (0, (1, 1.2))})
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#8c3f75")


def main(path: Path) -> None:
    """Write the figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure().savefig(path, dpi=160)
    print(path)


def figure() -> Figure:
    """A column per non-linearity: two priors, and the posterior of the second."""
    x, y = observations()
    drawn = Figure(figsize=(10, 7.4), layout="constrained")
    axes = drawn.subplots(3, 3, sharex=True, sharey=True)
    for column, name in zip(axes.T, NAMES, strict=True):
        _show_process(column[0], process(name, LONG))
        _show_process(column[1], process(name, SHORT))
        _show_process(column[2], process(name, SHORT).fit(x, y))
        column[2].plot(x, y, "o", color="black", markersize=4.5, label="observations")
        column[0].set_title(NAMES[name], fontsize=12)
        column[2].set_xlabel("x")
    rows = ("prior, l = 1", "prior, l = 1/3", "posterior, l = 1/3")
    for ax, text in zip(axes[:, 0], rows, strict=True):
        ax.set_ylabel(text)
    handles, labels = axes[2, 0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return drawn


def process(name: str, lengthscale: float) -> GaussianProcessRegressor:
    """The process of a wide network, not yet conditioned on anything."""
    kernel = unit_kernel(name, lengthscale)
    return GaussianProcessRegressor(kernel, alpha=NOISE_VARIANCE, optimizer=None)


def unit_kernel(name: str, lengthscale: float) -> Kernel:
    """Weights and biases N(0, 1/l²), with outputs scaled to variance 1 at x = 0."""
    variance = lengthscale**-2
    kernel = NetworkKernel(name, weight_variance=variance, bias_variance=variance)
    return kernel * float(1 / kernel.diag([[0.0]])[0])


def observations() -> tuple[Array, Array]:
    """Nine points of a smooth function in the middle of the range."""
    x = np.array([-1.6, -1.3, -0.9, -0.5, -0.1, 0.4, 0.8, 1.2, 1.5])
    return x[:, None], np.sin(2 * x) + 0.3 * x


def _show_process(ax: Axes, gp: GaussianProcessRegressor) -> None:
    """Mean and two standard deviations, and four draws."""
    mean, sd = gp.predict(GRID, return_std=True)
    band = (GRID[:, 0], mean - 2 * sd, mean + 2 * sd)
    ax.fill_between(*band, color="0.88", linewidth=0, label="mean ± 2 sd")
    ax.plot(GRID, mean, color="0.45", linewidth=2.2, label="mean")
    draws = gp.sample_y(GRID, n_samples=len(LINES), random_state=SEED)
    for draw, colour, line in zip(draws.T, COLOURS, LINES, strict=True):
        label = "draws" if line is LINES[0] else None
        ax.plot(GRID, draw, color=colour, linewidth=1.3, label=label, **line)
    ax.set(xlim=(-4, 4), ylim=(-6, 6))
    ax.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "path", nargs="?", default="outputs/network_kernels.png", type=Path
    )
    main(parser.parse_args().path)
