"""Figure 1 of paper 001: softmax with and without the uncertainty of its input.

Labels are drawn with log odds 4 sin(2.5 (x - 1.4)) for x in [-2, 2]: the last thing
seen on the right is that class 1 becomes likely. x* = 6 is far from all of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import expit, ndtri
from sklearn.gaussian_process import GaussianProcessClassifier

from caveat.papers.experiment import Experiment
from caveat.papers.page import Claim, Part, bullets, claim, flow, table, verdict
from caveat.papers.style import (
    COLOURS,
    legend_below,
    name_axes,
    name_outer,
    panels,
    shades,
)
from caveat.theory import NetworkKernel
from caveat.training import (
    Member,
    NetworkSpec,
    Rows,
    Schedule,
    SoftmaxCrossEntropy,
    Trained,
    train,
)

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
SURE = 0.001  # probability of the other class, up to which one is "1"
DOUBT = 0.05  # from which the other class is not ruled out
_NAMES = {DROPOUT: "MC dropout", PROCESS: "GP with the kernel of such nets"}


@dataclass(frozen=True)
class SoftmaxPoint:
    """The function and its softmax at one place, on one data set."""

    model: str
    data_set: int
    x: float
    function: float  # softmax input, the log odds of class 1: point estimate
    mean: float
    sd: float
    other_point: float  # probability of class 0 by the point estimate
    other_mean: float  # and averaged over functions
    other_low: float  # 95% of the functions are between
    other_high: float


def labelled(seed: int) -> tuple[Array, Array]:
    """A data set: places and classes 0 or 1."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-EDGE, EDGE, N_ROWS))
    return x, (rng.random(N_ROWS) < expit(log_odds(x))).astype(np.float64)


def log_odds(x: Array) -> Array:
    """Those that labels are drawn with."""
    return np.asarray(4.0 * np.sin(2.5 * (x - 1.4)))


def points_of(model: str, n_sets: int, n_draws: int) -> list[SoftmaxPoint]:
    """A model on some data sets, with so many functions on each."""
    sets = [labelled(seed) for seed in range(n_sets)]
    by = {DROPOUT: _by_dropout, PROCESS: _by_process}[model]
    return list(by(sets, n_draws))


def _by_dropout(
    sets: Sequence[tuple[Array, Array]], n_draws: int
) -> Iterator[SoftmaxPoint]:
    trained = _nets(sets)
    x = torch.from_numpy(GRID)[:, None]
    draws = _log_odds_of(trained.draws(x, n_draws=n_draws))
    point = _log_odds_of(trained.mean_outputs(x))
    for k in range(len(sets)):
        yield from _points(DROPOUT, k, point[k], draws[:, k])


def _nets(sets: Sequence[tuple[Array, Array]]) -> Trained:
    """One dropout net per data set, by Adam with the decay of its prior."""
    spec = NetworkSpec(
        HIDDEN,
        drop_rate=DROP_RATE,
        lengthscale=LENGTHSCALE,
        objective=SoftmaxCrossEntropy(2),
        schedule=Schedule(epochs=EPOCHS, keep_last=True),
    )
    members = [
        Member.of(spec, f"set {k}", precision=1.0, n_train=N_ROWS, data=k, seed=k)
        for k in range(len(sets))
    ]
    return train(members, [Rows.of(x[:, None], y) for x, y in sets])


def _log_odds_of(outputs: torch.Tensor) -> Array:
    return (outputs[..., 1] - outputs[..., 0]).double().numpy()


def _by_process(
    sets: Sequence[tuple[Array, Array]], n_draws: int
) -> Iterator[SoftmaxPoint]:
    """A Gaussian process with the kernel of such nets, by Laplace's approximation."""
    normal = ndtri((np.arange(n_draws) + 0.5) / n_draws)
    layers = (*["relu"] * len(HIDDEN), "identity")
    for k, (x, y) in enumerate(sets):
        kernel = NetworkKernel(layers, weight_variance=4.0, bias_variance=2.0)
        process = GaussianProcessClassifier(kernel).fit(x[:, None], y)
        mean, variance = process.latent_mean_and_variance(GRID[:, None])
        draws = mean + np.sqrt(variance) * normal[:, None]
        yield from _points(PROCESS, k, mean, draws)


def _points(
    model: str, data_set: int, point: Array, draws: Array
) -> Iterator[SoftmaxPoint]:
    """From log odds: a point estimate (places,) and draws (draws, places)."""
    other = expit(-draws)
    columns = (
        GRID, point, draws.mean(0), draws.std(0), expit(-point), other.mean(0),
        *np.quantile(other, [0.025, 0.975], axis=0),
    )  # fmt: skip
    for row in np.stack(columns, 1).tolist():
        yield SoftmaxPoint(model, data_set, *row)


class SoftmaxPlaces:
    """The points of a model, by where they are."""

    def __init__(self, points: Sequence[SoftmaxPoint], model: str) -> None:
        self._own = [p for p in points if p.model == model]

    def star(self, name: str) -> Array:
        """An attribute at x*, one number per data set."""
        return np.array([getattr(p, name) for p in self._own if p.x == STAR])

    def inside(self, name: str) -> Array:
        """An attribute where there are data, for all data sets."""
        return np.array([getattr(p, name) for p in self._own if abs(p.x) <= EDGE])

    @property
    def ratios(self) -> Array:
        """Mean over sd of f at x*, for each data set."""
        return np.abs(self.star("mean")) / self.star("sd")


def _row(name: str, own: SoftmaxPlaces) -> dict[str, str]:
    change = np.abs(own.inside("other_mean") - own.inside("other_point"))
    return {
        "model": name,
        "f, point estimate": f"{np.median(own.star('function')):+.1f}",
        "sd of f": f"{np.median(own.star('sd')):.1f}",
        "mean/sd of f": f"{np.median(own.ratios):.1f}",
        "P(class 0), point estimate": f"{np.median(own.star('other_point')):.1e}",
        "P(class 0), mean": f"{np.median(own.star('other_mean')):.4f}",
        "95% of functions up to": f"{np.median(own.star('other_high')):.4f}",
        "change of P where data are": f"{change.mean():.3f}",
    }


def _point_estimate(models: dict[str, SoftmaxPlaces]) -> Claim:
    shares = {
        name: float((own.star("other_point") <= SURE).mean())
        for name, own in models.items()
    }
    shown = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    return claim(
        """Passing a point estimate of a function (solid line 1a) through a softmax
        (solid line 1b) results in extrapolations with unjustified high confidence for
        points far from the training data. x* for example would be classified as class
        1 with probability 1.""",
        f"""Class 1 with a probability of at least {1 - SURE:g} by the point estimate,
        of the data sets: {shown}. In most of them:
        {verdict(min(shares.values()) > 0.5)}.""",
    )


def _distribution(models: dict[str, SoftmaxPlaces]) -> Claim:
    first, second = (float(np.median(own.ratios)) for own in models.values())
    limit = flow(f"""With ReLU units both the mean and the sd of f grow in proportion to
        x, so their ratio tends to a limit far away, and with it the doubt. It is
        {first:.1f} for dropout and {second:.1f} for the GP: that dropout leaves less
        doubt than the GP whose kernel it has: {verdict(first > second)}.""")
    return Claim(
        "However, passing the distribution (shaded area 1a) through a softmax (shaded "
        "area 1b) better reflects classification uncertainty far from the training "
        "data.",
        bullets(_doubt(name, own) for name, own in models.items()) + "\n\n" + limit,
    )


def _doubt(name: str, own: SoftmaxPlaces) -> str:
    less = float((own.star("other_mean") > own.star("other_point")).mean())
    left = float(np.median(own.star("other_mean")))
    return f"""{name}: less sure of class 1 at x* than the point estimate in {less:.0%}
        of the data sets (at least 95%): {verdict(less >= 0.95)}. Class 0 keeps
        {left:.2%} (median), at least {DOUBT:.0%}: {verdict(left >= DOUBT)}."""


def _function(axes: Axes, own: Sequence[SoftmaxPoint]) -> None:
    x, function, mean, sd = _columns(own, "x", "function", "mean", "sd")
    shades(axes, x, mean, sd)
    axes.plot(x, function, color=COLOURS["black"], label="point estimate")
    axes.axhline(0.0, color="0.6", linewidth=0.6)


def _softmax(axes: Axes, own: Sequence[SoftmaxPoint]) -> None:
    names = ("x", "other_point", "other_mean", "other_low", "other_high")
    x, point, mean, low, high = _columns(own, *names)
    band: dict[str, Any] = {"color": COLOURS["sky"], "alpha": 0.35, "linewidth": 0}
    axes.fill_between(x, 1 - high, 1 - low, label="95%", **band)
    axes.plot(x, 1 - point, color=COLOURS["black"], label="of the point estimate")
    dashed: dict[str, Any] = {"color": COLOURS["blue"], "linestyle": "--"}
    axes.plot(x, 1 - mean, label="mean over functions", **dashed)


def _columns(own: Sequence[SoftmaxPoint], *names: str) -> tuple[Array, ...]:
    return tuple(np.array([getattr(p, name) for p in own]) for name in names)


@dataclass(frozen=True)
class Softmax(Experiment[str, SoftmaxPoint]):
    """What figure 1 of paper 001 sketches, computed; a job is a model."""

    name = "softmax"
    title = "Figure 1 of paper 001: softmax input and output, computed"
    record = SoftmaxPoint
    brief = True

    @property
    def n_draws(self) -> int:
        return 200 if self.quick else 1000

    def jobs(self, records: Sequence[SoftmaxPoint]) -> tuple[str, ...]:
        return DROPOUT, PROCESS

    def key(self, record: SoftmaxPoint) -> str:
        return record.model

    def run(self, job: str) -> list[SoftmaxPoint]:
        return points_of(job, 3 if self.quick else 20, self.n_draws)

    def page(self, records: Sequence[SoftmaxPoint]) -> Iterator[Part]:
        models = {name: SoftmaxPlaces(records, name) for name in (DROPOUT, PROCESS)}
        n_sets = len(models[DROPOUT].star("x"))
        yield flow(f"""The paper's figure is a sketch; here it is computed. {n_sets}
            data sets of {N_ROWS} labels with x in [-{EDGE:g}, {EDGE:g}], drawn with log
            odds 4 sin(2.5 (x - 1.4)). MC dropout: nets of
            {" and ".join(map(str, HIDDEN))} ReLU units, {DROP_RATE:g} of each layer
            dropped, l = {LENGTHSCALE:g}, {EPOCHS:,} epochs of Adam, T = {self.n_draws};
            the point estimate is standard dropout. GP: the covariance function of such
            nets of infinite width, scales by marginal likelihood, Laplace's
            approximation; the point estimate is the mean of f. The figure shows the
            first data set: f with shades of half an sd up to two, and P(class 1).""")
        yield f"## At x* = {STAR:g}, median over the data sets"
        yield table(_row(name, own) for name, own in models.items())
        yield "## The paper's claims"
        yield _point_estimate(models)
        yield _distribution(models)

    def in_brief(self, records: Sequence[SoftmaxPoint]) -> tuple[str, str]:
        kept = [
            float(np.median(SoftmaxPlaces(records, name).star("other_mean")))
            for name in (DROPOUT, PROCESS)
        ]
        paper = """the softmax of a point estimate is sure of class 1 at x*, far from
            the data; that of the distribution better reflects the uncertainty"""
        ours = f"""at x* MC dropout leaves class 0 a probability of {kept[0]:.1%}, a GP
            {kept[1]:.1%} (medians over data sets)"""
        return paper, ours

    def figure(self, records: Sequence[SoftmaxPoint]) -> Figure:
        """Both models on data set 0."""
        figure, grid = panels(2, 2, height=4.4, sharex=True)
        x, y = labelled(0)
        for (left, right), model in zip(grid, (DROPOUT, PROCESS), strict=True):
            own = [p for p in records if (p.model, p.data_set) == (model, 0)]
            _function(left, own)
            _softmax(right, own)
            right.plot(x, y, "|", color="0.35", markersize=5, label="labels")
            name_axes(left, _NAMES[model], y="softmax input f(x)")
            name_axes(right, _NAMES[model], y="softmax output, class 1")
        grid[0, 0].legend(loc="upper left")
        legend_below(figure, grid[0, 1], ncols=4)
        name_outer(grid, x="x")
        for axes in grid.ravel().tolist():
            for edge in (-EDGE, EDGE):
                axes.axvline(edge, color="0.5", linestyle="--", linewidth=0.8)
            axes.axvline(
                STAR, color=COLOURS["vermilion"], linestyle="--", linewidth=1.0
            )
            star: dict[str, Any] = {"xytext": (-2, 2), "ha": "right"}
            axes.annotate(
                "x*", (STAR, 0.0), xycoords=("data", "axes fraction"),
                color=COLOURS["vermilion"], textcoords="offset points", **star,
            )  # fmt: skip
        return figure
