"""Tables of data for ``bench_tables``: real ones and made ones, in two halves.

Everything about the defaults was chosen on the half ``"develop"``; the half ``"final"``
was fixed beforehand and is only ever run to be shown.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from caveat.data import load_uci

Array = NDArray[np.float64]
Rows = tuple[Array, NDArray[Any]]

N_SPLITS = 3
TEST_SHARE = 0.2
MOST_ROWS = 5000  # of a real set, drawn once; the speed of all models is not the point


@dataclass(frozen=True)
class TableSet:
    """A table to predict one column of.

    Attributes
    ----------
    name : str
    half : str
        ``"develop"`` or ``"final"``.
    is_regression : bool
    make : callable
        Gives X and y.
    """

    name: str
    half: str
    is_regression: bool
    make: Callable[[], Rows]

    def split(self, number: int) -> tuple[Array, Any, Array, Any]:
        """``X_train, y_train, X_test, y_test`` of a random fifth."""
        x, y = self.make()
        order = np.random.default_rng([number, 7]).permutation(len(x))
        n_test = round(TEST_SHARE * len(x))
        test, train = order[:n_test], order[n_test:]
        return x[train], y[train], x[test], y[test]


def _uci(name: str) -> Callable[[], Rows]:
    def make() -> Rows:
        found = load_uci(name)
        return _some(found.X, found.y)

    return make


def _some(x: Array, y: NDArray[Any]) -> Rows:
    rows = np.random.default_rng(0).permutation(len(x))[:MOST_ROWS]
    return x[rows], y[rows]


def _sklearn(load: Callable[..., Any]) -> Callable[[], Rows]:
    def make() -> Rows:
        x, y = load(return_X_y=True)
        return np.asarray(x, dtype=float), np.asarray(y)

    return make


def _statsmodels(
    module: str,
    target: str,
    *,
    without: tuple[str, ...] = (),
    above: float | None = None,
) -> Callable[[], Rows]:
    """A set of statsmodels; ``above`` makes two classes of the target."""

    def make() -> Rows:
        import importlib

        # typed packages of it are not to be had
        frame: Any = importlib.import_module(f"statsmodels.datasets.{module}")
        table = frame.load_pandas().data
        numbers = table.select_dtypes("number").dropna()
        y = numbers[target].to_numpy(dtype=float)
        x = numbers.drop(columns=[target, *without]).to_numpy(dtype=float)
        return _some(x, y if above is None else (y > above).astype(int))

    return make


def _normal(seed: int, rows: int, columns: int) -> tuple[np.random.Generator, Array]:
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(rows, columns))


def _noise(seed: int, rows: int, columns: int) -> Callable[[], Rows]:
    def make() -> Rows:
        rng, x = _normal(seed, rows, columns)
        return x, rng.normal(size=rows)

    return make


def _coin(seed: int, rows: int, columns: int) -> Callable[[], Rows]:
    def make() -> Rows:
        rng, x = _normal(seed, rows, columns)
        return x, rng.integers(0, 2, size=rows)

    return make


def _wavy(x: Array) -> Array:
    return np.sin(2 * x[:, 0]) + x[:, 1] * (x[:, 2] > 0) + 0.5 * x[:, 3]


def _heteroscedastic(seed: int, rows: int) -> Callable[[], Rows]:
    def make() -> Rows:
        rng, x = _normal(seed, rows, 5)
        return x, _wavy(x) + rng.normal(size=rows) * np.exp(0.8 * x[:, 0] - 0.7)

    return make


def _growing_noise() -> Rows:
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 10, size=(800, 1))
    return x, 2 * x[:, 0] + rng.normal(size=800) * (0.2 + 0.3 * x[:, 0])


def _heavy_tails(seed: int, rows: int) -> Callable[[], Rows]:
    def make() -> Rows:
        rng, x = _normal(seed, rows, 6)
        return x, x @ rng.normal(size=6) + rng.standard_t(2, size=rows)

    return make


def _mistyped() -> Rows:
    """Prices; the floor space of three rows has a unit too small."""
    rng = np.random.default_rng(3)
    space = rng.lognormal(4.3, 0.4, size=3200)
    rooms = np.rint(space / 28 + rng.normal(size=3200)).clip(1)
    age, place = rng.uniform(0, 90, 3200), rng.integers(0, 6, 3200)
    value = np.array([1.0, 1.2, 0.8, 1.6, 2.1, 1.1])[place]
    price = 40 * space * value * (1 - 0.004 * age) + 300 * rooms
    price = price + 400 * rng.normal(size=3200)
    x = np.column_stack([space, rooms, age, place])
    x[rng.choice(3200, 3, replace=False), 0] *= 1000
    return x, price


def _wide(seed: int, rows: int, columns: int, *, classes: bool) -> Callable[[], Rows]:
    """More columns than rows, five of which count."""

    def make() -> Rows:
        rng, x = _normal(seed, rows, columns)
        y = x[:, :5] @ np.array([1.5, -1, 1, 0.5, -0.5]) + 0.5 * rng.normal(size=rows)
        return x, (y > 0).astype(int) if classes else y

    return make


def _many_rows() -> Rows:
    rng, x = _normal(12, 20_000, 20)
    y = _wavy(x) + 0.3 * x[:, 4] * x[:, 5] + np.abs(x[:, 6])
    return x, y + 0.5 * rng.normal(size=20_000)


def _categories(seed: int, rows: int, *, classes: bool) -> Callable[[], Rows]:
    """Three columns of codes, whose order says nothing, and two numbers."""

    def make() -> Rows:
        rng = np.random.default_rng(seed)
        codes = [rng.integers(0, levels, rows) for levels in (40, 12, 5)]
        effects = [rng.normal(size=levels) for levels in (40, 12, 5)]
        numbers = rng.normal(size=(rows, 2))
        y = sum(e[c] for e, c in zip(effects, codes, strict=True))
        y = y + numbers[:, 0] + effects[1][codes[1]] * numbers[:, 1]
        x = np.column_stack([*codes, numbers]).astype(float)
        if not classes:
            return x, y + 0.5 * rng.normal(size=rows)
        return x, (y + rng.logistic(size=rows) > 0).astype(int)

    return make


def _friedman(number: int, rows: int, noise: float) -> Callable[[], Rows]:
    def make() -> Rows:
        made = getattr(datasets, f"make_friedman{number}")
        found: Rows = made(rows, noise=noise, random_state=number)
        return found

    return make


def _label_noise(seed: int, rows: int, share: float) -> Callable[[], Rows]:
    """Two moons and three columns of noise; some labels are wrong."""

    def make() -> Rows:
        rng = np.random.default_rng(seed)
        x, y = datasets.make_moons(rows, noise=0.2, random_state=seed)
        wrong = rng.random(rows) < share
        return np.column_stack([x, rng.normal(size=(rows, 3))]), np.where(
            wrong, 1 - y, y
        )

    return make


def _wrong_labels(load: Callable[..., Any], share: float) -> Callable[[], Rows]:
    def make() -> Rows:
        x, y = load(return_X_y=True)
        rng = np.random.default_rng(1)
        wrong = rng.random(len(y)) < share
        return x, np.where(wrong, rng.integers(0, y.max() + 1, len(y)), y)

    return make


def _imbalanced() -> Rows:
    found: Rows = datasets.make_classification(
        2000, 12, n_informative=5, weights=[0.96], flip_y=0.01, random_state=8
    )
    return found


def _several_classes() -> Rows:
    found: Rows = datasets.make_classification(
        1200, 15, n_informative=8, n_classes=5, flip_y=0.05, random_state=9
    )
    return found


_DEVELOP, _FINAL = "develop", "final"

SETS = (
    TableSet("diabetes", _DEVELOP, True, _sklearn(datasets.load_diabetes)),
    TableSet("pure noise", _DEVELOP, True, _noise(1, 300, 8)),
    TableSet("boston", _DEVELOP, True, _uci("boston")),
    TableSet("concrete", _DEVELOP, True, _uci("concrete")),
    TableSet("wine quality", _DEVELOP, True, _uci("wine")),
    TableSet("kin8nm", _DEVELOP, True, _uci("kin8nm")),
    TableSet("noise grows with x", _DEVELOP, True, _heteroscedastic(2, 1000)),
    TableSet("heavy tails", _DEVELOP, True, _heavy_tails(4, 600)),
    TableSet("mistyped inputs", _DEVELOP, True, _mistyped),
    TableSet("wide", _DEVELOP, True, _wide(6, 100, 300, classes=False)),
    TableSet("categories", _DEVELOP, True, _categories(7, 1500, classes=False)),
    TableSet("friedman 1", _DEVELOP, True, _friedman(1, 400, 1.0)),
    TableSet("state crime", _DEVELOP, True, _statsmodels("statecrime", "murder")),
    TableSet("breast cancer", _DEVELOP, False, _sklearn(datasets.load_breast_cancer)),
    TableSet("iris", _DEVELOP, False, _sklearn(datasets.load_iris)),
    TableSet("moons, 15 % wrong", _DEVELOP, False, _label_noise(1, 600, 0.15)),
    TableSet("coin", _DEVELOP, False, _coin(3, 300, 6)),
    TableSet("wide classes", _DEVELOP, False, _wide(4, 120, 400, classes=True)),
    TableSet(
        "categories, classes", _DEVELOP, False, _categories(5, 2000, classes=True)
    ),
    TableSet("affairs", _DEVELOP, False, _statsmodels("fair", "affairs", above=0.0)),
    TableSet("yacht", _FINAL, True, _uci("yacht")),
    TableSet("energy", _FINAL, True, _uci("energy")),
    TableSet("power", _FINAL, True, _uci("power")),
    TableSet("protein", _FINAL, True, _uci("protein")),
    TableSet("naval", _FINAL, True, _uci("naval")),
    TableSet("pure noise, 20 columns", _FINAL, True, _noise(11, 500, 20)),
    TableSet("growing noise, 1 column", _FINAL, True, _growing_noise),
    TableSet("heavy tails, small", _FINAL, True, _heavy_tails(12, 150)),
    TableSet("wide, small", _FINAL, True, _wide(13, 60, 1000, classes=False)),
    TableSet("many categories", _FINAL, True, _categories(14, 4000, classes=False)),
    TableSet("friedman 3", _FINAL, True, _friedman(3, 600, 0.1)),
    TableSet("20,000 rows", _FINAL, True, _many_rows),
    TableSet("doctor visits", _FINAL, True, _statsmodels("randhie", "mdvis")),
    TableSet("wine", _FINAL, False, _sklearn(datasets.load_wine)),
    TableSet("digits", _FINAL, False, _sklearn(datasets.load_digits)),
    TableSet(
        "breast cancer, 15 % wrong",
        _FINAL,
        False,
        _wrong_labels(datasets.load_breast_cancer, 0.3),
    ),
    TableSet("imbalanced", _FINAL, False, _imbalanced),
    TableSet("five classes", _FINAL, False, _several_classes),
    TableSet("wide classes, small", _FINAL, False, _wide(15, 60, 500, classes=True)),
    TableSet(
        "election",
        _FINAL,
        False,
        _statsmodels("anes96", "vote", without=("PID",)),
    ),
)


def chosen(names: list[str] | None, half: str | None) -> list[TableSet]:
    """The sets of these names, or of a half, or all."""
    found = [s for s in SETS if half in (None, s.half)]
    if names is None:
        return found
    known = {s.name: s for s in SETS}
    unknown = [n for n in names if n not in known]
    if unknown:
        raise ValueError(f"There is no set {unknown[0]!r}. Known: {', '.join(known)}.")
    return [known[n] for n in names]
