"""A binary problem on a line: functions, their uncertainty, and their softmax.

Labels are drawn with log odds 4 sin(2.5 (x - 1.4)) for x in [-2, 2]: the last thing
seen on the right is that class 1 becomes likely. x* = 6 is far from all of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, ndtri
from sklearn.gaussian_process import GaussianProcessClassifier

from caveat.theory import NetworkKernel
from caveat.training import Architecture, Member, Recipe, Rows, Trained, train
from caveat.training.objectives import SoftmaxCrossEntropy

Array = NDArray[np.float64]

EDGE = 2.0  # training data lie in [-2, 2]
STAR = 6.0
N_ROWS = 60
HIDDEN = (50, 50)
DROP_RATE = 0.5
LENGTHSCALE = 0.3
EPOCHS = 1000
DROPOUT, PROCESS = "MC dropout", "GP"
GRID: Array = np.linspace(-STAR, STAR, 49)


@dataclass(frozen=True)
class Point:
    """The function and its softmax at one place, on one data set.

    Attributes
    ----------
    model : str
        ``"MC dropout"`` or ``"GP"``.
    data_set : int
    x : float
    function, mean, sd : float
        Softmax input (log odds of class 1): point estimate, mean and sd.
    other_point, other_mean : float
        Probability of class 0 by the point estimate, and averaged over functions.
    other_low, other_high : float
        Between which 95% of the functions have it.
    """

    model: str
    data_set: int
    x: float
    function: float
    mean: float
    sd: float
    other_point: float
    other_mean: float
    other_low: float
    other_high: float


def labelled(seed: int) -> tuple[Array, Array]:
    """A data set: places and classes 0 or 1."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-EDGE, EDGE, N_ROWS))
    return x, (rng.random(N_ROWS) < expit(log_odds(x))).astype(np.float64)


def log_odds(x: Array) -> Array:
    """Those that labels are drawn with."""
    return np.asarray(4.0 * np.sin(2.5 * (x - 1.4)))


def points_of(model: str, n_sets: int, n_draws: int) -> list[Point]:
    """A model on some data sets, with so many functions on each."""
    sets = [labelled(seed) for seed in range(n_sets)]
    by = {DROPOUT: _by_dropout, PROCESS: _by_process}[model]
    return list(by(sets, n_draws))


def _by_dropout(sets: Sequence[tuple[Array, Array]], n_draws: int) -> Iterator[Point]:
    trained = _nets(sets)
    x = torch.from_numpy(GRID)[:, None]
    draws = _log_odds_of(trained.draws(x, n_draws=n_draws))
    point = _log_odds_of(trained.mean_outputs(x))
    for k in range(len(sets)):
        yield from _points(DROPOUT, k, point[k], draws[:, k])


def _nets(sets: Sequence[tuple[Array, Array]]) -> Trained:
    """One dropout net per data set, by Adam with the decay of its prior."""
    rates = (0.0, *[DROP_RATE] * len(HIDDEN))
    members = [
        Member.from_prior(
            f"set {k}", rates, precision=1.0, lengthscale=LENGTHSCALE, n_train=N_ROWS,
            data=k, epochs=EPOCHS, seed=k,
        )
        for k in range(len(sets))
    ]  # fmt: skip
    recipe = Recipe(Architecture(1, HIDDEN, 2), objective=SoftmaxCrossEntropy(2))
    rows = [Rows.of(x[:, None], y) for x, y in sets]
    return cast(Trained, train(recipe, members, rows))


def _log_odds_of(outputs: torch.Tensor) -> Array:
    return (outputs[..., 1] - outputs[..., 0]).double().numpy()


def _by_process(sets: Sequence[tuple[Array, Array]], n_draws: int) -> Iterator[Point]:
    """A Gaussian process with the kernel of such nets, by Laplace's approximation."""
    normal = ndtri((np.arange(n_draws) + 0.5) / n_draws)
    layers = (*["relu"] * len(HIDDEN), "identity")
    for k, (x, y) in enumerate(sets):
        kernel = NetworkKernel(layers, weight_variance=4.0, bias_variance=2.0)
        process = GaussianProcessClassifier(kernel).fit(x[:, None], y)
        mean, variance = process.latent_mean_and_variance(GRID[:, None])
        draws = mean + np.sqrt(variance) * normal[:, None]
        yield from _points(PROCESS, k, mean, draws)


def _points(model: str, data_set: int, point: Array, draws: Array) -> Iterator[Point]:
    """From log odds: a point estimate (places,) and draws (draws, places)."""
    other = expit(-draws)
    columns = (
        GRID, point, draws.mean(0), draws.std(0), expit(-point), other.mean(0),
        *np.quantile(other, [0.025, 0.975], axis=0),
    )  # fmt: skip
    for row in np.stack(columns, 1).tolist():
        yield Point(model, data_set, *row)
