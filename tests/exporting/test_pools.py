"""Pools of presets: the same numbers from a graph, and from its parts in torch."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import torch
from scipy.special import gammaincinv

import caveat
from caveat.errors import UnsupportedModelError
from caveat.estimators import DropoutClassifier, DropoutRegressor
from caveat.estimators.tables.budget import Budget
from caveat.estimators.tables.columns import Columns
from caveat.estimators.tables.nets import Nets
from caveat.estimators.tables.noise import FarNoise
from caveat.estimators.tables.regression import Bent
from caveat.estimators.tables.ridge import Ridge
from caveat.exporting.building import build
from caveat.exporting.fitted import Pooled
from caveat.exporting.hashing import normal_quantile
from caveat.exporting.pooling import gamma_factors
from caveat.exporting.pools import ColumnViews
from caveat.exporting.subjects import Question
from caveat.training.members import Architecture
from tests.estimators.tables.data import CHEAPEST

RNG = np.random.default_rng(0)
COLUMNS = [RNG.normal(size=90), RNG.integers(0, 4, 90), RNG.normal(size=90) * 100]
X = np.stack(COLUMNS, 1)
TAILS = RNG.standard_t(3, size=90)
Y = 1e4 + 50 * np.sin(2 * X[:, 0]) * (X[:, 1] + 1) + TAILS * (5 + 10 * (X[:, 2] > 0))

REGRESSION = ("mean", "std", "lower", "upper", "epistemic_variance", "draws")
CLASSES = ("probs", "entropy", "mutual_information", "label", "draws")


def pool(monkeypatch, kind, y, budget=CHEAPEST, rows=X):
    """A pool that a test can afford."""
    door = f"caveat.estimators.{kind.__name__.removeprefix('Dropout').lower()}"
    monkeypatch.setattr(f"{door}.budget_of", lambda *a, **k: budget)
    return kind(random_state=0, progress=False).fit(rows, y)


def answers(model, path, outputs, n_draws):
    """Of the graph for all rows, and ours."""
    caveat.export(model, X[:4], path, outputs=outputs, level=0.9)
    session = onnxruntime.InferenceSession(path)
    given = {"x": X, "seed": np.array(0), "n_draws": np.array(n_draws)}
    model.set_params(n_draws=n_draws * model._table.turns)
    found = session.run(list(outputs), given)
    return dict(zip(outputs, found, strict=True)), model.predictive(X)


def assert_close(found, expected):
    found, expected = np.asarray(found), expected.numpy()
    size = max(np.std(expected), 1.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * size)


def check_regression(model, path, n_draws):
    found, ours = answers(model, path, REGRESSION, n_draws)
    lower, upper = ours.interval(0.9)
    assert_close(found["lower"], lower)
    assert_close(found["upper"], upper)
    for name in ("mean", "std", "epistemic_variance", "draws"):
        assert_close(found[name], getattr(ours, name))


@torch.no_grad()
def told(model, outputs, seeds, n_draws, rows=X[:7]):
    """What the graph tells, draw by draw in torch, and what it has to tell."""
    is_numbers = isinstance(model, DropoutRegressor)
    asked = Question(outputs, not is_numbers, None, 0.9, None, None)
    subject = Pooled(model, asked)
    batch = subject.batch(rows)
    chunk = build(subject, batch, together=False).chunk
    (x,), _ = batch.arguments
    for seed in seeds:
        state = chunk.empty(len(x), torch.float64)
        for t in range(n_draws):
            draw, piece = torch.tensor([t]), torch.tensor([t // 16])
            noise = chunk.noise(torch.tensor(seed), draw, piece, len(x))
            block = chunk.block(chunk.clean(x), noise, len(x), 1)
            state = chunk.summary.merged(state, chunk.summary.of_block(block))
        found = dict(zip(outputs, chunk.summary.told(state), strict=True))
        yield found, subject.truth(batch, seed, n_draws)


def all_parts(monkeypatch):
    """As if each kind of part had gained, and the tails of the noise."""
    model = pool(monkeypatch, DropoutRegressor, Y)
    model._table = everything(model._table)
    return model


def test_a_pool_of_networks_lines_and_noise(monkeypatch):
    for found, expected in told(all_parts(monkeypatch), REGRESSION, (0, 5), 20):
        for name in REGRESSION:
            assert_close(found[name], expected[name])


def far_rows(columns):
    """Rows inside, and 1, 5 and 100 widths outside, of one column and of several."""
    found = [*X[:3]]
    widths = columns.high - columns.low
    for k in (1, 5, 100):
        for which, end in (([0], 1), ([0], -1), ([1, 2], -1), ([0, 1, 2], 1)):
            row = X[3].copy()
            bound = columns.high if end > 0 else columns.low
            row[which] = (bound + end * k * np.array([1.0, 0.7, 0.9]) * widths)[which]
            found.append(row)
    return np.stack(found)


def assert_each_close(found, expected):
    """Of each row, in units of its own spread."""
    size = np.maximum(expected["std"].numpy(), 1.0)
    for name in REGRESSION:
        gap = np.abs(np.asarray(found[name]) - expected[name].numpy())
        assert (gap < 1e-5 * size ** (1 + ("variance" in name))).all(), name


def without_noise(model, df):
    """The same of a target that has next to none."""
    table = model._table
    laws = tuple(replace(law, std=1e-3, df=df) for law in table.laws)
    return replace(table, laws=laws)


def test_a_pool_beyond_the_bounds_and_where_draws_are_narrow(monkeypatch):
    model = all_parts(monkeypatch)
    rows = far_rows(model._table.columns)
    for found, expected in told(model, REGRESSION, (0, 5), 20, rows):
        assert_each_close(found, expected)
        std = expected["std"].numpy()
        assert std[-4:].min() > 2 * std[:3].max()
    for df in (np.inf, 3.0):
        model._table = without_noise(model, df)
        for found, expected in told(model, REGRESSION, (5,), 7, rows[2:7]):
            assert_each_close(found, expected)
            noise = 1.0 - expected["epistemic_variance"] / expected["std"].square()
            assert (noise > 0.2499).all()
            assert df < np.inf or (noise < 0.2501).all()


@pytest.mark.slow
@pytest.mark.parametrize("is_noiseless", [False, True])
def test_files_of_a_preset_beyond_the_bounds(is_noiseless, tmp_path):
    x = X[:25] if is_noiseless else X
    y = np.sin(2 * x[:, 0]) * (x[:, 1] + 1) if is_noiseless else Y
    model = DropoutRegressor(preset="fast", random_state=0, progress=False).fit(x, y)
    rows = far_rows(model._table.columns)
    path = caveat.export(model, rows, tmp_path / "m.onnx", outputs=REGRESSION)
    session = onnxruntime.InferenceSession(path)
    subject = Pooled(model, Question(REGRESSION, False, None, 0.95, None, None))
    for own in (rows, rows[2:5]):
        for seed in (0, 5):
            expected = subject.truth(subject.batch(own), seed, 30)
            given = {"x": own, "seed": np.array(seed), "n_draws": np.array(30)}
            found = session.run(list(REGRESSION), given)
            assert_each_close(dict(zip(REGRESSION, found, strict=True)), expected)
            if is_noiseless:
                noise = 1.0 - expected["epistemic_variance"] / expected["std"].square()
                assert 0.2499 < noise.min() < 0.27  # narrow draws were smoothed


def all_parts_of_a_classifier(monkeypatch):
    model = pool(monkeypatch, DropoutClassifier, np.digitize(Y, [9.98e3, 1.002e4]))
    table = model._table
    model._table = replace(
        table,
        names=(*table.names, "networks", "class frequencies"),
        parts=(*table.parts, some_nets("pieces", table.columns, 3), None),
        weights=np.array([*table.weights, 0.3, 0.2]),
    )
    return model


@pytest.mark.parametrize("has_networks", [True, False])
def test_a_classifier(has_networks, monkeypatch):
    if has_networks:
        model = all_parts_of_a_classifier(monkeypatch)
    else:  # nothing is drawn
        model = pool(monkeypatch, DropoutClassifier, Y > 1e4, Budget(()))
    assert (model._table.turns > 1) == has_networks
    for found, expected in told(model, CLASSES, (0, 5), 20):
        for name in CLASSES:
            assert_close(found[name], expected[name])


@pytest.mark.slow
def test_a_file_has_all_parts(monkeypatch, tmp_path):
    check_regression(all_parts(monkeypatch), tmp_path / "m.onnx", 20)


def some_nets(view, columns, n_outputs):
    """Two networks as chance made them."""
    width = getattr(columns, view)(X).shape[1]
    count = Architecture(width, (4,), n_outputs).n_parameters
    rng = np.random.default_rng(0)
    mean, scale = rng.normal(size=(2, width))
    flat = rng.normal(size=(2, count))
    units = 1.0 + rng.random((2, n_outputs))
    return Nets(view, (4,), 0.3, mean, 1.0 + scale**2, flat, units)


def test_a_share_of_the_draws_for_far_rows(monkeypatch):
    model = all_parts(monkeypatch)
    table = model._table
    laws = tuple(FarNoise(w.std, w.strength, 3.0, 0.1, 40.0) for w in table.laws)
    model._table = replace(table, laws=laws)
    for found, expected in told(model, REGRESSION, (0, 5), 20):
        assert_each_close(found, expected)


def everything(table):
    """The same with a share for networks and for the constant, and with tails."""
    rng = np.random.default_rng(0)
    lines = [
        Ridge.fit(table.columns.pieces(X), rng.normal(size=(90, 1))) for _ in range(2)
    ]
    bent = Bent("pieces", tuple(lines), some_nets("encoded", table.columns, 1))
    return replace(
        table,
        names=("linear", "networks", "constant"),
        parts=(Ridge.fit(table.columns.plain(X), Y[:, None] / 100), bent, None),
        shares=np.array([[0.5], [0.4], [0.1]]),
        spreads=Ridge.fit(np.c_[table.columns.pieces(X), Y / 100], TAILS[:, None]),
        laws=tuple(replace(law, df=3.0, strength=0.1) for law in table.laws),
    )


@pytest.mark.slow
def test_several_outputs_and_the_defaults(tmp_path):
    rng = np.random.default_rng(1)
    wide = np.stack([Y, X @ [1.0, -2.0, 0.1] + rng.normal(size=90)], 1)
    model = DropoutRegressor(random_state=0, progress=False).fit(X, wide)
    assert model._table.turns > 1
    check_regression(model, tmp_path / "m.onnx", 30)


@pytest.mark.slow
def test_a_file_of_a_classifier(monkeypatch, tmp_path):
    model = all_parts_of_a_classifier(monkeypatch)
    found, ours = answers(model, tmp_path / "m.onnx", CLASSES, 20)
    for name in CLASSES:
        assert_close(found[name], getattr(ours, name))


def test_a_file_of_torch_is_refused_with_the_remedy(monkeypatch, tmp_path):
    model = pool(monkeypatch, DropoutRegressor, Y, Budget(()))
    with pytest.raises(UnsupportedModelError, match="pools of presets"):
        caveat.export(model, X[:4], tmp_path / "m.pt2", outputs=("mean", "std"))


def test_columns_are_those_of_the_pool():
    columns = Columns.of(X)
    assert columns.has_pieces and any(map(len, columns.levels))
    far = np.concatenate([X, 1e6 * X, X + 0.3])
    found = ColumnViews(columns)(torch.from_numpy(far))
    for name in ("plain", "encoded", "pieces"):
        expected = getattr(columns, name)(far)
        np.testing.assert_allclose(found[name], expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("df", [2.0, 3.0, 10.0, 59.0])
def test_quantiles_of_the_tails(df):
    levels = np.concatenate([np.geomspace(1e-9, 0.5, 99), 1 - np.geomspace(1e-9, 0.5)])
    found = gamma_factors(df, normal_quantile(torch.from_numpy(levels)))
    expected = gammaincinv(df / 2, levels) / (df / 2)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_heads_are_refused_with_the_remedy(monkeypatch, tmp_path):
    model = pool(monkeypatch, DropoutRegressor, Y)
    model._table = replace(model._table, heads=object(), head_share=0.5)
    with pytest.raises(UnsupportedModelError, match='Fit preset="auto"'):
        caveat.export(model, X, tmp_path / "m.onnx")


def test_other_seeds_are_other_draws_of_the_same_pool(monkeypatch):
    table = pool(monkeypatch, DropoutRegressor, Y)._table
    first, second = (table.draws(X, n_draws=400, seed=1, shift=s)[0] for s in (0, 5))
    assert abs(first - second).max() > 1e-3
    error = np.sqrt((first.var(0) + second.var(0)) / 400)
    assert (abs(first.mean(0) - second.mean(0)) < 5 * error + 1e-9).all()
