"""A regression that chooses for itself: candidates, cross-fitted, pooled, calibrated.

The mean is a convex combination of a constant, exact linear models and networks, with
the weights that make rows most probable which none of them has learned from. So is the
noise: its size, how that depends on the row, and its tails.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import nn

from caveat.errors import CaveatWarning
from caveat.estimators.tables import ridge
from caveat.estimators.tables.budget import Budget
from caveat.estimators.tables.columns import Columns
from caveat.estimators.tables.heads import NAME as NAME_OF_HEADS
from caveat.estimators.tables.heads import FittedHeads, Heads, best_share, fit_heads
from caveat.estimators.tables.nets import Lesson, Nets, Recipe, train_nets
from caveat.estimators.tables.noise import NoiseLaw, find_noise
from caveat.estimators.tables.normals import AddressedNormals
from caveat.estimators.tables.records import DIVERGED, WORSE, Candidate, is_above_zero
from caveat.estimators.tables.ridge import Ridge
from caveat.estimators.tables.views import RowsOfViews, Views
from caveat.estimators.tables.weights import TAILS, mean_shares
from caveat.training.folds import Fold
from caveat.training.objectives import SquaredError
from caveat.training.streams import mask_seed

Array = NDArray[np.float64]

CONSTANT = "constant"
# Of the seeds among those of the parts: of the noise, of heads, of what lies outside.
NOISE_PLACE, _HEADS_PLACE, BEYOND_PLACE = 10**6, 10**6 + 1, 10**6 + 2
_COSTS = {CONSTANT: 0.0, "linear": 0.5, "robust linear": 1.5}
_LINE_COST = 2.5
_NET_COST = 4.0
_FEWEST_FOR_LINES = 5  # rows
_FLOOR = 0.05  # of a residual, in standard deviations, before its logarithm
_HELD_DRAWS = 24
_ROUNDING = 1e-13  # of a number, below which it has not changed
_FAR = 4.0  # standard deviations, beyond which errors count alike
FARTHEST = 20.0  # widths of a column, beyond which a row is no farther out
BACK = 0.5  # widths of a column, over which the slope at its end is taken
_SURE = 3.0  # standard errors of a bias
_SKEWED = 0.1  # a bias of so many standard deviations adds 1 % to the squared error
_EXACT = 2.0**53  # beyond which all numbers are whole
_STEPS = 10  # decimals that y may be rounded to
LEAST_NOISE = 0.25  # share of the variance, so that a mixture of draws has no gaps


@dataclass(frozen=True, eq=False)
class Bent:
    """Networks beside lines: what a recipe predicts.

    Attributes
    ----------
    view : str
        The columns of the lines.
    lines : tuple of Ridge
        One per fold, beside which its network was trained.
    nets : Nets
    """

    view: str
    lines: tuple[Ridge, ...]
    nets: Nets

    def straight(self, views: Views | RowsOfViews, only: int | None = None) -> Array:
        """The mean of its lines, or that of one."""
        lines = self.lines if only is None else [self.lines[only]]
        return np.asarray(
            np.mean([line.predict(views[self.view]) for line in lines], 0)
        )


@dataclass(frozen=True, eq=False)
class TableRegression:
    """A fitted pool.

    Attributes
    ----------
    columns : Columns
    centre, scale : array, shape (outputs,)
        Standard units of y.
    names : tuple of str
        Of the parts with a weight.
    parts : tuple of Ridge or Bent
        None stands for the constant.
    shares : array, shape (parts, outputs)
    level : array, shape (2, outputs)
        Mean of y and its standard error, in standard units.
    laws : tuple of NoiseLaw
        One per output.
    spreads : Ridge or None
        Of the log scale of residuals.
    heads : Heads or None
        Networks with a noise head, of which a share of the draws are.
    head_share : float
    """

    columns: Columns
    centre: Array
    scale: Array
    names: tuple[str, ...]
    parts: tuple[Ridge | Bent | None, ...]
    shares: Array
    level: Array
    laws: tuple[NoiseLaw, ...]
    spreads: Ridge | None
    heads: Heads | None = None
    head_share: float = 0.0

    def draws(
        self, x: Array, *, n_draws: int, seed: int, shift: int = 0
    ) -> tuple[Array, Array]:
        """Means and precisions, both (draws, rows, outputs), in the units of y.

        ``shift`` is added to the seed of every stream: that is the ``seed`` of a graph
        (``caveat.export``), which cannot make seeds of seeds.
        """
        views = Views(self.columns, x)
        count = round(self.head_share * n_draws)
        means, tau = np.empty((2, n_draws, len(x), len(self.scale)))
        if count < n_draws:
            drawn, own_tau = self._pooled(views, n_draws - count, seed, shift)
            drawn += self._beyond(x, len(drawn), mask_seed(seed, BEYOND_PLACE) + shift)
            means[count:], tau[count:] = _smooth(drawn, own_tau)
        if count:
            assert self.heads is not None
            own = mask_seed(seed, _HEADS_PLACE)
            means[:count], logs = self.heads.draws(views, n_draws=count, seed=own)
            tau[:count] = np.exp(logs)
        return means * self.scale + self.centre, tau / np.square(self.scale)

    @property
    def turns(self) -> int:
        """Networks that take turns at the draws; 1 without any."""
        return max((len(p.lines) for p in self.parts if isinstance(p, Bent)), default=1)

    def _beyond(self, x: Array, number: int, seed: int) -> Array:
        """What draws (draws, rows, outputs) add beyond what was seen of the columns.

        The mean goes on in one way there, and to go on as over the last half of the
        columns is another. Nobody has seen which is right: the draws go to either side
        by the difference.
        """
        levels = AddressedNormals(seed, self.turns).standard_normal((number,))
        reach = np.zeros((len(x), len(self.scale)))
        seen = self.columns.seen(x)
        widths = self.columns.most - self.columns.least
        excess = (x - seen) / np.where(widths > 0, widths, np.inf)
        far = np.abs(excess).max(1, initial=0.0)
        if far.any():  # then of all rows: sums round by how many there are
            # The farthest column goes back by just as much however far out it is.
            back = BACK * excess / np.where(far > 0, far, 1.0)[:, None] * widths
            here, end, before = (
                self._mean(Views(self.columns, rows)) for rows in (x, seen, seen - back)
            )
            steps = np.minimum(far, FARTHEST) / BACK
            reach = np.abs(here - end - (end - before) * steps[:, None])
        return np.asarray((levels - levels.mean())[:, None, None] * reach)

    def _mean(self, views: Views) -> Array:
        """What is drawn around, in standard units: networks without their noise."""
        found = np.zeros((len(views), len(self.scale)))
        for share, name, part in zip(self.shares, self.names, self.parts, strict=True):
            if part is None:
                found += share * self.level[0]
            elif isinstance(part, Bent):
                bent = part.nets.means(views[part.nets.view]).mean(0)
                found += share * (bent + part.straight(views))
            else:
                found += share * part.predict(views[LINES[name].view])
        return found

    def _pooled(
        self, views: Views, n_draws: int, seed: int, shift: int
    ) -> tuple[Array, Array]:
        """The same of the pool of means, in standard units."""
        found = np.zeros((n_draws, len(views), len(self.scale)))
        for place, (name, part) in enumerate(zip(self.names, self.parts, strict=True)):
            own = mask_seed(seed, place)
            if isinstance(part, Bent):
                drawn = bent_draws(part, views, n_draws=n_draws, seed=own, shift=shift)
            else:
                normals = AddressedNormals(own + shift, self.turns)
                drawn = self._line(name, part, views, n_draws, normals)
            found += self.shares[place] * drawn
        normals = AddressedNormals(mask_seed(seed, NOISE_PLACE) + shift, self.turns)
        return found, self._precisions(found.mean(0), views, n_draws, normals)

    def _line(
        self,
        name: str,
        part: Ridge | None,
        views: Views,
        number: int,
        normals: AddressedNormals,
    ) -> Array:
        if part is not None:
            return part.draws(views[LINES[name].view], number, normals)
        mean, error = self.level
        return np.asarray(
            mean + error * normals.standard_normal((number, 1, len(mean)))
        )

    def _precisions(
        self, mean: Array, views: Views, number: int, normals: AddressedNormals
    ) -> Array:
        logs = np.zeros_like(mean)
        if self.spreads is not None:
            logs = self.spreads.predict(np.hstack([views["pieces"], mean]))
        tau = np.empty((number, *mean.shape))
        for d, law in enumerate(self.laws):
            scales = law.scales(logs[:, d])
            tau[..., d] = law.factors(number, normals)[:, None] / np.square(scales)
        return tau


@dataclass(frozen=True)
class Line:
    """An exact linear model: of which columns, and of what kind."""

    view: str
    kind: str


LINES = {
    "linear": Line("plain", ridge.PLAIN),
    "robust linear": Line("plain", ridge.ROBUST),
    "sparse linear": Line("plain", ridge.SPARSE),
    "additive": Line("pieces", ridge.ROBUST),
    "sparse additive": Line("pieces", ridge.SPARSE),
}


def networks_of(part: object) -> tuple[nn.Sequential, ...]:
    """The networks of a part of a pool as modules; none, if it has none."""
    if isinstance(part, Bent):
        return part.nets.modules()
    return part.modules() if isinstance(part, Nets) else ()


def bent_draws(
    part: Bent,
    views: Views | RowsOfViews,
    *,
    n_draws: int,
    seed: int,
    only: int | None = None,
    shift: int = 0,
) -> Array:
    """Draws (draws, rows, outputs); all networks share their mean.

    A draw is the mean of all networks plus the deviation of one of them under its masks
    from its own mean: of one network on held-out rows, the same without the others.
    """
    count = 1 if only is not None else len(part.lines)
    each = -(-n_draws // count)
    x = views[part.nets.view]
    bent = part.nets.draws(x, n_draws=each, seed=seed, only=only, shift=shift)
    own = bent.mean(0)
    found = (bent - own).reshape(-1, *bent.shape[2:])[:n_draws]
    return np.asarray(found + own.mean(0) + part.straight(views, only))


class FittedRegression(NamedTuple):
    """A pool, and what was seen of it.

    Attributes
    ----------
    table : TableRegression
    candidates : list of Candidate
        All that were tried.
    log_likelihood : float
        Mean log density of held-out rows under the pool, in the units of y. The noise
        was chosen by the same rows.
    """

    table: TableRegression
    candidates: list[Candidate]
    log_likelihood: float


def fit_regression(
    x: Array,
    y: Array,
    *,
    budget: Budget,
    weight: Array,
    seed: int,
    progress: bool | None,
) -> FittedRegression:
    """Fit all candidates, pool them, and find the noise.

    Parameters
    ----------
    x : array, shape (rows, columns)
        Finite numbers.
    y : array, shape (rows, outputs)
        Finite numbers.
    budget : Budget
        What may be tried.
    weight : array, shape (rows,)
        Of the rows; mean 1.
    seed : int
        Of everything random.
    progress : bool or None
        Whether to show a bar.

    Returns
    -------
    FittedRegression
    """
    return _Fit(x, y, budget, weight, seed, progress).run()


class _Fit:
    """One fit: rows in random order and in standard units, and what was found."""

    def __init__(
        self,
        x: Array,
        y: Array,
        budget: Budget,
        weight: Array,
        seed: int,
        progress: bool | None,
    ) -> None:
        order = np.random.default_rng([seed, 0]).permutation(len(x))
        self.weight = weight[order]
        self.columns = Columns.of(x)
        self.views = Views(self.columns, x[order])
        self.centre, self.scale = _units(y)
        self.y = (y[order] - self.centre) / self.scale
        self.steps = _steps(y) / self.scale
        self.pulls = True
        self.budget, self.seed, self.progress = budget, seed, progress
        self.folds = budget.folds(len(x))
        self.held: dict[str, Array] = {}  # (draws, rows, outputs)
        self.bent: dict[str, Bent] = {}
        self.worse: list[str] = []

    def run(self) -> FittedRegression:
        for name in self._simple():
            self.held[name] = self._held_out_line(name)
        if len(self.held) > 1 and self._is_skewed():
            self.pulls = False
            self.held = {
                name: self._held_out_line(name)
                for name in self._simple()
                if LINES.get(name) != LINES["robust linear"]  # the plain one, now
            }
        if self.budget.recipes and len(self.held) > 1:
            self._networks()
        names = list(self.held)
        means = np.stack([self.held[name].mean(0) for name in names])
        costs = [self._cost(name) for name in names]
        tails = TAILS if self.pulls else (np.inf,)
        shares = np.stack(
            [
                mean_shares(means[:, :, d].T, self.y[:, d], costs, self.weight, tails)
                for d in range(self.y.shape[1])
            ],
            1,
        )
        pooled = sum(
            share * self.held[name] for share, name in zip(shares, names, strict=True)
        )
        laws, spreads, logs = self._noise(np.asarray(pooled))
        heads, share = self._heads(logs)
        if heads is not None:
            logs = np.logaddexp(np.log1p(-share) + logs, np.log(share) + heads.logs)
        kept = [i for i, share in enumerate(shares) if share.any()]
        table = TableRegression(
            self.columns,
            self.centre,
            self.scale,
            tuple(names[i] for i in kept),
            tuple(self._final(names[i]) for i in kept),
            shares[kept],
            _level(self.y, self.weight),
            laws,
            spreads,
            None if heads is None else heads.heads,
            share,
        )
        value = self._in_units_of_y(logs)
        candidates = self._candidates(names, (1.0 - share) * shares)
        if heads is not None:
            own = self._in_units_of_y(heads.logs)
            curve = heads.heads.nets.curve
            candidates.append(Candidate(NAME_OF_HEADS, own, share, curve))
        return FittedRegression(table, candidates, value)

    def _in_units_of_y(self, logs: Array) -> float:
        """The mean of log densities of rows in standard units."""
        mean = self.weight @ logs / self.weight.sum()
        return float(mean - np.log(self.scale).sum())

    def _heads(self, pool: Array) -> tuple[FittedHeads | None, float]:
        """Networks with a noise head, if the budget has them and they gain enough."""
        if not self.budget.heads or len(self.held) < 2:
            return None, 0.0
        found = fit_heads(
            self.budget,
            self.views,
            self.y,
            folds=self.folds,
            weight=self.weight,
            seed=self.seed,
            progress=self.progress,
        )
        if found is None:
            warnings.warn(
                DIVERGED.format(name=NAME_OF_HEADS), CaveatWarning, stacklevel=6
            )
            return None, 0.0
        share = best_share(pool, found.logs, self.weight)
        return (found, share) if share else (None, 0.0)

    def _cost(self, name: str) -> float:
        return _NET_COST if name in self.bent else _COSTS.get(name, _LINE_COST)

    def _simple(self) -> list[str]:
        found = [CONSTANT]
        if len(self.y) < _FEWEST_FOR_LINES:
            return found
        views = {"plain"} | ({"pieces"} if self.columns.has_pieces else set())
        return found + [name for name, line in LINES.items() if line.view in views]

    def _line(self, name: str, rows: slice | NDArray[np.int64]) -> Ridge:
        return Ridge.fit(
            self.views[LINES[name].view][rows],
            self.y[rows],
            weight=self.weight[rows],
            kind=LINES[name].kind,
            pulls=self.pulls,
        )

    def _is_skewed(self) -> bool:
        """Whether pulling in far errors moves the mean, for certain and by enough."""
        errors = self.y - self.held[self._base()].mean(0)
        total = self.weight.sum()
        bias = self.weight @ errors / total
        std = np.sqrt(self.weight @ np.square(errors - bias) / total)
        rows = total**2 / float(self.weight @ self.weight)
        least = max(_SURE / np.sqrt(rows), _SKEWED)
        return bool((np.abs(bias) > least * std).any())

    def _held_out_line(self, name: str) -> Array:
        found = np.empty((_HELD_DRAWS, *self.y.shape))
        for number, fold in enumerate(self.folds):
            rng = np.random.default_rng([self.seed, 1, number])
            if name == CONSTANT:
                mean, error = _level(self.y[fold.train], self.weight[fold.train])
                normal = rng.standard_normal((_HELD_DRAWS, 1, len(mean)))
                found[:, fold.valid] = mean + error * normal
            else:
                line = self._line(name, fold.train)
                rows = self.views[LINES[name].view][fold.valid]
                found[:, fold.valid] = line.draws(rows, _HELD_DRAWS, rng)
        return found

    def _networks(self) -> None:
        base = self._base()
        lines = tuple(self._line(base, fold.train) for fold in self.folds)
        lessons, units = {}, {}
        for recipe in self.budget.recipes:
            made = [
                self._lesson(recipe, fold, line, base)
                for fold, line in zip(self.folds, lines, strict=True)
            ]
            lessons[recipe.name] = [lesson for lesson, _ in made]
            units[recipe.name] = np.stack([unit for _, unit in made])
        trained = train_nets(
            self.budget.recipes,
            {r.view: self.views[r.view] for r in self.budget.recipes},
            lessons,
            SquaredError(),
            batch_size=self.budget.batch_size(len(self.y)),
            learning_rate=self.budget.learning_rate,
            seed=self.seed,
            progress=self.progress,
        )
        for name, (nets, bad) in trained.items():
            part = Bent(LINES[base].view, lines, replace(nets, units=units[name]))
            self._keep_networks(name, part, bad)
        if self.worse:
            names = ", ".join(map(repr, self.worse))
            warnings.warn(WORSE.format(names=names), CaveatWarning, stacklevel=6)

    def _base(self) -> str:
        """The line beside which networks are trained: the best one."""
        found = [name for name in LINES if name in self.held]
        return min(found, key=lambda name: float(self._errors(self.held[name]).mean()))

    def _lesson(
        self, recipe: Recipe, fold: Fold, line: Ridge, base: str
    ) -> tuple[Lesson, Array]:
        """Residuals of a line in units of their own, pulled in where they are far."""
        gap = self.y[fold.train] - line.predict(
            self.views[LINES[base].view][fold.train]
        )
        middle = 1.4826 * np.median(np.abs(gap), 0)
        std = gap.std(0)
        limit = recipe.limit * np.where(middle > 1e-6 * std, middle, std)
        if self.pulls:
            gap = np.clip(gap, -limit, limit)
        unit = gap.std(0)
        unit = np.where(unit > 1e-9, unit, 1.0)
        return Lesson(fold, gap / unit, self.weight[fold.train]), unit

    def _keep_networks(self, name: str, part: Bent, bad: list[int]) -> None:
        """Held-out draws of a recipe; one that is worse than a constant is left out."""
        if bad:
            warnings.warn(DIVERGED.format(name=name), CaveatWarning, stacklevel=7)
            return
        held = np.empty((_HELD_DRAWS, *self.y.shape))
        for number, fold in enumerate(self.folds):
            views = RowsOfViews(self.views, fold.valid)
            seed = mask_seed(self.seed, number)
            held[:, fold.valid] = bent_draws(
                part, views, n_draws=_HELD_DRAWS, seed=seed, only=number
            )
        losses = self._errors(held) - self._errors(self.held[CONSTANT])
        if is_above_zero(losses.mean(1), self.weight):
            self.worse.append(name)
            return
        self.held[name], self.bent[name] = held, part

    def _errors(self, held: Array) -> Array:
        """Absolute errors of the mean; a few far rows do not decide."""
        errors = np.abs(held.mean(0) - self.y)
        return np.minimum(errors, _FAR) if self.pulls else np.square(errors)

    def _final(self, name: str) -> Ridge | Bent | None:
        """Exact models of all rows; networks as they were validated."""
        if name == CONSTANT:
            return None
        return self.bent[name] if name in self.bent else self._line(name, slice(None))

    def _noise(self, pooled: Array) -> tuple[tuple[NoiseLaw, ...], Ridge | None, Array]:
        """The noise of each output, and log densities of the rows held out."""
        mean, variance = pooled.mean(0), pooled.var(0)
        errors = self.y - mean
        logs, spreads = np.zeros_like(mean), None
        if len(self.y) >= self.budget.rows_for_spreads:
            logs, spreads = self._spreads(errors, mean)
        laws = tuple(
            find_noise(
                errors[:, d], variance[:, d], logs[:, d], self.weight, self.steps[d]
            )
            for d in range(errors.shape[1])
        )
        if all(law.strength == 0.0 for law in laws):
            spreads = None
        each = [
            _log_densities(law, errors[:, d], variance[:, d], logs[:, d])
            for d, law in enumerate(laws)
        ]
        return laws, spreads, np.sum(each, 0)

    def _spreads(self, errors: Array, mean: Array) -> tuple[Array, Ridge]:
        """Log scales of rows, cross-fitted, and the model of all rows for them."""
        middle = np.median(np.abs(errors), 0) + 1e-9
        size = np.log(np.hypot(errors / middle, _FLOOR))
        z = np.hstack([self.views["pieces"], mean])
        held = np.empty_like(size)
        for fold in self.folds:
            model = Ridge.fit(
                z[fold.train], size[fold.train], weight=self.weight[fold.train]
            )
            held[fold.valid] = model.predict(z[fold.valid])
        whole = Ridge.fit(z, size, weight=self.weight)
        return held, whole

    def _candidates(self, names: Sequence[str], shares: Array) -> list[Candidate]:
        zeros = np.zeros(len(self.y))
        found = []
        for name, share in zip(names, shares, strict=True):
            held = self.held[name]
            logs = zeros.copy()
            for d in range(self.y.shape[1]):
                error = self.y[:, d] - held[..., d].mean(0)
                variance = held[..., d].var(0)
                law = find_noise(error, variance, zeros, self.weight, self.steps[d])
                logs += _log_densities(law, error, variance, zeros)
            value = self._in_units_of_y(logs)
            part = self.bent.get(name)
            curve = () if part is None else part.nets.curve
            found.append(Candidate(name, value, float(share.mean()), curve))
        return found


def _units(y: Array) -> tuple[Array, Array]:
    """Medians and robust standard deviations of the targets; their size if constant."""
    first, centre, third = np.quantile(y, [0.25, 0.5, 0.75], axis=0)
    scale = (third - first) / 1.349
    std = y.std(0)
    scale = np.where(scale > 1e-6 * std, scale, std)
    size = np.abs(centre)
    is_constant = scale <= _ROUNDING * size  # 0.1 thirty times has a std of 1e-17
    return centre, np.where(is_constant, np.where(size > 0, size, 1.0), scale)


def _steps(y: Array) -> Array:
    """To how many decimals the targets are rounded, as a step; 0 if they are not."""
    found = np.zeros(y.shape[1])
    for d, values in enumerate(y.T):
        for power in range(_STEPS):
            if np.abs(values).max() >= _EXACT / 10.0**power:
                break
            shifted = values * 10.0**power
            gaps = np.abs(shifted - np.rint(shifted))
            if (gaps <= _ROUNDING * np.abs(shifted)).all():
                found[d] = 10.0**-power
                break
    return found


def _smooth(means: Array, tau: Array) -> tuple[Array, Array]:
    """Draws whose noise is no small part of their spread, of the same variance.

    Between narrow draws that lie far apart a mixture has gaps, which say nothing of y.
    """
    mean, spread = means.mean(0), means.var(0)
    middle = len(tau) // 2
    noise = 1.0 / np.partition(tau, middle, axis=0)[middle]
    least = LEAST_NOISE * (spread + noise)
    narrow = noise < least
    if not narrow.any():
        return means, tau
    nearer = np.sqrt(1.0 - LEAST_NOISE) * np.sqrt((spread + noise)[narrow])
    means[:, narrow] = mean[narrow] + (means - mean)[:, narrow] * (
        nearer / np.sqrt(spread[narrow])
    )
    tau[:, narrow] *= (noise / least)[narrow]
    return means, tau


def _level(y: Array, weight: Array) -> Array:
    """The mean of y and its standard error, shape (2, outputs)."""
    total = weight.sum()
    mean = weight @ y / total
    variance = weight @ np.square(y - mean) / total
    rows = max(total**2 / float(weight @ weight), 1.0)
    return np.stack([mean, np.sqrt(variance / rows)])


def _log_densities(law: NoiseLaw, error: Array, variance: Array, logs: Array) -> Array:
    total = np.sqrt(np.square(law.scales(logs)) + variance)
    return law.log_density(error / total) - np.log(total)
