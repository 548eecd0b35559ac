"""Figure 1a of paper 002: what dropout, ridge and lasso do to correlated weights."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray
from sklearn.linear_model import lars_path

from caveat.data import load_qspr
from caveat.estimators import BayesianDropoutRegression
from caveat.papers.experiment import Experiment
from caveat.papers.page import Claim, Part, bullets, claim, flow, holds, table, verdict
from caveat.papers.style import ink, name_axes, panels

Array = NDArray[np.float64]

FLIPPED = "DGR"
SCALINGS = ("standardised", "centred")
METHODS = ("dropout", "ridge", "lasso")
RATES: Array = np.concatenate(
    [[0.0, 0.001, 0.003], np.arange(1, 50) / 50, [0.99, 0.999]]
)
RATES_QUICK: Array = np.array([0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999])
_LASSO_FROM = 1e-3  # smallest share of the penalty that makes all weights zero


@dataclass(frozen=True)
class Weight:
    """One weight at one point of a path, per standard deviation of its column."""

    scaling: str  # of the columns
    method: str
    strength: float  # f of dropout, lambda0 of ridge, alpha of the lasso
    position: float  # the same scaled to [0, 1], as the figure has it
    feature: str
    weight: float  # mu
    effective: float  # (1 - f) mu of dropout, mu of the others
    posterior_sd: float  # of mu; NaN for the lasso, which has no posterior


@dataclass(frozen=True, eq=False)
class AminoAcids:
    """The data of the figure: DGR flipped, columns and response centred."""

    x: Array  # shape: (19, 7)
    y: Array  # shape: (19,)
    names: tuple[str, ...]

    @classmethod
    def load(cls) -> "AminoAcids":
        """From the data folder."""
        data = load_qspr()
        flipped = np.array([name == FLIPPED for name in data.feature_names])
        x = np.where(flipped, -data.X, data.X)
        return cls(x - x.mean(0), data.y - data.y.mean(), data.feature_names)

    def scaled(self, scaling: str) -> Array:
        """The columns, divided by their standard deviations or not."""
        return self.x / self.x.std(0) if scaling == "standardised" else self.x

    @property
    def correlations(self) -> Array:
        """Of each column with the response."""
        return self.alone / self.y.std()

    @property
    def alone(self) -> Array:
        """Lambda1^-1 X'y: the weight of each column by itself, per deviation."""
        return np.asarray(self.scaled("standardised").T @ self.y / len(self.y))


def path_of(method: str, scaling: str, rates: Array) -> Iterator[Weight]:
    """The path of a method, at positions that are the drop rates."""
    fit = {"dropout": _dropout, "ridge": _ridge, "lasso": _lasso}[method]
    return fit(AminoAcids.load(), scaling, rates)


def _dropout(data: AminoAcids, scaling: str, rates: Array) -> Iterator[Weight]:
    for rate in rates.tolist():
        model = BayesianDropoutRegression(rate, 0.0, drop_to="mean")
        yield from _fitted(data, scaling, model, "dropout", (rate, rate))


def _ridge(data: AminoAcids, scaling: str, rates: Array) -> Iterator[Weight]:
    size = float(np.square(data.scaled(scaling)).sum(0).mean())
    for position in rates.tolist():
        strength = size * position / (1.0 - position)
        model = BayesianDropoutRegression(0.0, strength)
        yield from _fitted(data, scaling, model, "ridge", (strength, position))


def _fitted(
    data: AminoAcids,
    scaling: str,
    model: BayesianDropoutRegression,
    method: str,
    place: tuple[float, float],
) -> Iterator[Weight]:
    x = data.scaled(scaling)
    model.fit(x, data.y)
    spread = np.sqrt(np.diag(model.posterior_.covariance()))
    table = np.array([model.coef_, model.effective_coef_, spread]) * x.std(0)
    for name, column in zip(data.names, table.T.tolist(), strict=True):
        yield Weight(scaling, method, *place, name, *column)


def _lasso(data: AminoAcids, scaling: str, rates: Array) -> Iterator[Weight]:
    x = data.scaled(scaling)
    knots, _, corners = lars_path(x, data.y, method="lasso")
    for position in np.geomspace(_LASSO_FROM, 1.0, len(rates)).tolist():
        strength = float(position * knots[0])
        for k, name in enumerate(data.names):
            weight = float(np.interp(strength, knots[::-1], corners[k, ::-1]))
            weight *= float(x[:, k].std())
            yield Weight(
                scaling, "lasso", strength, position, name, weight, weight, np.nan
            )


_STANDARDISING = """The paper does not say whether columns were standardised, nor
whether μ or (1 - f) μ is plotted, and it matters. With λ0 = 0 dropout does not depend
on the scale of the columns, so its weights per standard deviation are the same either
way. On standardised columns, however, (1 - f) μ is exactly ridge regression with
λ0 = n f/(1 - f): only the factor 1/(1 - f) tells μ from it, and a large ridge penalty
is all positive too. On columns in their own units ridge and lasso are other
estimators. As f tends to 1, μ tends to the weights of each column alone, while
(1 - f) μ, which predicts, tends to 0 as ridge does."""

Path = dict[float, list[Weight]]


def path(weights: Sequence[Weight], scaling: str, method: str) -> Path:
    """The weights of one path by their position."""
    found: Path = {}
    for weight in weights:
        if (weight.scaling, weight.method) == (scaling, method):
            found.setdefault(weight.position, []).append(weight)
    return found


def positive_from(points: Path) -> Weight | None:
    """Where a path becomes all positive and stays so; None if it never does."""
    first: Weight | None = None
    for position in sorted(points, reverse=True):
        if not all(w.weight > 0.0 for w in points[position]):
            break
        first = points[position][0]
    return first


def _row(dropout: Path, data: AminoAcids, k: int) -> dict[str, str]:
    most = dropout[0.9][k]
    return {
        "covariate": data.names[k],
        "correlation": f"{data.correlations[k]:+.2f}",
        "least squares": _shown(dropout[0.0][k]),
        "μ, f = 0.5": _shown(dropout[0.5][k]),
        "μ, f = 0.9": _shown(most),
        "(1 - f) μ, f = 0.9": f"{most.effective:+.2f}",
        "alone, Λ1⁻¹X'y": f"{data.alone[k]:+.2f}",
    }


def _shown(weight: Weight) -> str:
    return f"{weight.weight:+.2f} ± {weight.posterior_sd:.2f}"


def _signs(weights: Sequence[Weight]) -> Iterator[str]:
    found = positive_from(path(weights, "standardised", "dropout"))
    yield f"dropout, any scaling: {_from('f', found)} (μ and (1 - f) μ alike)"
    for scaling in SCALINGS:
        found = positive_from(path(weights, scaling, "ridge"))
        yield f"ridge, {scaling} columns: {_from('λ0', found)}{_as_rate(found)}"
    for scaling in SCALINGS:
        yield f"lasso, {scaling} columns: {_of_lasso(path(weights, scaling, 'lasso'))}"


def _from(symbol: str, found: Weight | None) -> str:
    if found is None:
        return "nowhere on the grid"
    return f"from {symbol} = {found.strength:.3g} on"


def _as_rate(found: Weight | None) -> str:
    if found is None or found.scaling != "standardised":
        return ""
    return f"; {found.strength:.3g} is n f/(1 - f) for f = {found.position:.3g}"


def _of_lasso(points: Path) -> str:
    negative = [p for p, own in points.items() if any(w.weight < 0.0 for w in own)]
    most = max(sum(w.weight > 0.0 for w in own) for own in points.values())
    return f"""never more than {most} of {len(next(iter(points.values())))} positive at
        once; some negative up to {max(negative):.2g} of the penalty that makes all
        zero"""


def _isolation(dropout: Path, data: AminoAcids) -> Claim:
    last = max(dropout)
    pairs = zip(dropout[last], data.alone, strict=True)
    gap = max(abs(w.weight / alone - 1.0) for w, alone in pairs)
    predicting = max(abs(w.effective) for w in dropout[last])
    return claim(
        """dropout shrinks parameters towards Λ1⁻¹X'y, corresponding to the maximum
        likelihood estimate of each weight in isolation of the other""",
        f"""{holds(gap < 0.02).capitalize()} for μ: at f = {last:g} every
        weight is within {gap:.1%} of that limit. It does not hold for the weights that
        predict, (1 - f) μ, of which the largest is then {predicting:.4f}.""",
        lead="",
        end=".",
    )


def _positive(weights: Sequence[Weight], data: AminoAcids) -> Claim:
    dropout = positive_from(path(weights, "standardised", "dropout"))
    ridge, lasso = (
        any(_ever_positive(path(weights, scaling, method)) for scaling in SCALINGS)
        for method in ("ridge", "lasso")
    )
    return claim(
        """in contrast [to] ridge regression and Lasso, dropout shrinks the parameters
        towards an all positive solution""",
        f"""All covariates correlate positively with the response:
        {_yes((data.correlations > 0.0).all())}. Dropout ends all positive:
        {_yes(dropout is not None)}. Ridge is ever all positive: {_yes(ridge)}, and the
        lasso: {_yes(lasso)}. In contrast to the lasso:
        {verdict(dropout is not None and not lasso)}; in contrast to ridge:
        {verdict(dropout is not None and not ridge)}. The contrast to ridge is not one
        of signs: as λ0 grows ridge tends to X'y/λ0, which has the signs of the
        correlations in any units.
        What sets dropout apart is that μ does not vanish at the end of the path;
        (1 - f) μ does.""",
        lead="",
        end=".",
    )


def _ever_positive(points: Path) -> bool:
    return any(all(w.weight > 0.0 for w in own) for own in points.values())


def _yes(is_so: object) -> str:
    return "yes" if is_so else "no"


_LIMIT = 20.0  # of the axis of weights
_LINEAR = 0.5  # linear up to here, logarithmic beyond: curves near 0 stay apart
_TICKS = (-10, -2, -0.5, 0, 0.5, 2, 10)
_ALL_POSITIVE = "0.9"
_TITLES = (
    "dropout, μ",
    "ridge, standardised",
    "lasso, standardised",
    "dropout, (1 - f) μ",
    "ridge, own units",
    "lasso, own units",
)
_RIDGE = "λ0 / (λ0 + mean Σx²)"
_LASSO = "α / α of all zero"
_LABELS = ("drop rate f", _RIDGE, _LASSO, "drop rate f", _RIDGE, _LASSO)


def _mu(weight: Weight) -> float:
    return weight.weight


def _effective(weight: Weight) -> float:
    return weight.effective


def _panel(axes: Axes, points: Path, value: Callable[[Weight], float]) -> None:
    positions = sorted(points)
    axes.axhline(0.0, color="0.7", linewidth=0.8)
    for k, _ in enumerate(points[positions[0]]):
        axes.plot(
            positions,
            [value(points[position][k]) for position in positions],
            markevery=(3 * k + 2, max(len(positions) // 4, 1)),
            label=points[positions[0]][k].feature,
            **ink(k),
        )
    found = positive_from(points)
    if found is not None:
        axes.axvspan(found.position, 1.0, color=_ALL_POSITIVE, zorder=0)
    axes.set_yscale("symlog", linthresh=_LINEAR, linscale=1.5)
    axes.set_ylim(-_LIMIT, _LIMIT)
    axes.set_yticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
    axes.set_yticks([], minor=True)


@dataclass(frozen=True)
class Shrinkage(Experiment[tuple[str, str], Weight]):
    """Weights on the amino acids; a job is a scaling of the columns and a method."""

    name = "shrinkage"
    title = "Figure 1a of paper 002: dropout, ridge and lasso as shrinkage"
    record = Weight
    brief = True

    def jobs(self, records: Sequence[Weight]) -> list[tuple[str, str]]:
        return list(product(SCALINGS, METHODS))

    def key(self, record: Weight) -> tuple[str, str]:
        return record.scaling, record.method

    def run(self, job: tuple[str, str]) -> list[Weight]:
        scaling, method = job
        return list(path_of(method, scaling, RATES_QUICK if self.quick else RATES))

    def page(self, records: Sequence[Weight]) -> Iterator[Part]:
        data = AminoAcids.load()
        n_rows, n_columns = data.x.shape
        dropout = path(records, "standardised", "dropout")
        yield flow(f"""QSPR data: n = {n_rows} amino acids, p = {n_columns} covariates,
            sign of {FLIPPED} flipped; columns and response centred; λ0 = 0 in dropout.
            Weights are per standard deviation of the column, ± posterior standard
            deviation. Their axis in the figure is linear up to ±{_LINEAR:g} and
            logarithmic beyond.""")
        yield _STANDARDISING
        yield table(_row(dropout, data, k) for k in range(n_columns))
        yield "## Where all weights are positive, on the grid of the figure"
        yield bullets(_signs(records))
        yield "## The paper's claims"
        yield _isolation(dropout, data)
        yield _positive(records, data)

    def in_brief(self, records: Sequence[Weight]) -> tuple[str, str]:
        dropout = path(records, "standardised", "dropout")
        last = max(dropout)
        pairs = list(zip(dropout[last], AminoAcids.load().alone, strict=True))
        gap = max(abs(w.weight / alone - 1.0) for w, alone in pairs)
        predicting = max(abs(w.effective) for w, _ in pairs)
        ridge, lasso = (
            positive_from(path(records, "standardised", name))
            for name in ("ridge", "lasso")
        )
        paper = """dropout shrinks weights towards those of each column alone, all
            positive here, in contrast to ridge and lasso"""
        ours = f"""at f = {last:g} μ is within {gap:.1%} of those weights, and the
            weights (1 - f) μ that predict within {predicting:.4f} of 0; all positive
            are dropout {_from("f", positive_from(dropout))}, ridge
            {_from("λ0", ridge)} and the lasso {_from("α", lasso)}"""
        return paper, ours

    def figure(self, records: Sequence[Weight]) -> Figure:
        """All paths; where the rest is all positive is grey."""
        data = AminoAcids.load()
        figure, grid = panels(2, 3, height=4.6, sharey=True)
        dropout = path(records, "standardised", "dropout")
        _panel(grid[0, 0], dropout, _mu)
        _panel(grid[1, 0], dropout, _effective)
        grid[0, 0].plot([1.0] * len(data.alone), data.alone, "k_", clip_on=False)
        for row, scaling in enumerate(SCALINGS):
            _panel(grid[row, 1], path(records, scaling, "ridge"), _mu)
            _panel(grid[row, 2], path(records, scaling, "lasso"), _mu)
            grid[row, 2].set_xscale("log")
            grid[row, 0].set_ylabel("weight per s.d. of column")
        for axes, title, label in zip(
            grid.ravel().tolist(), _TITLES, _LABELS, strict=True
        ):
            name_axes(axes, title, label)
        handles, names = grid[0, 0].get_legend_handles_labels()
        grey = Patch(color=_ALL_POSITIVE, label="all positive")
        figure.legend(
            handles=[*handles, grey],
            loc="outside lower center",
            ncols=len(names) // 2 + 1,
        )
        return figure
