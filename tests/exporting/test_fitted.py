"""Estimators: recipes are exported with their units."""

import numpy as np
import onnxruntime
import pytest

import caveat
from caveat.errors import ParameterError, UnsupportedModelError
from caveat.estimators import DropoutClassifier, DropoutRegressor, NoiseHead
from caveat.training import Schedule

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [1, 10, 100] + [0, 5, 2000]
Y = 1e4 + 50 * np.sin(X[:, 0]) + RNG.normal(size=40)
SHORT = Schedule(epochs=3)


def recipe(kind=DropoutRegressor, **how):
    settings = {"hidden": (8,), "drop_rate": 0.1, "schedule": SHORT, "random_state": 0}
    return kind(**{**settings, "n_draws": 24, **how})


def answers(model, path, outputs) -> list[np.ndarray]:
    caveat.export(model, X[:5], path, outputs=outputs)
    session = onnxruntime.InferenceSession(path)
    given = {"x": X, "seed": np.array(0), "n_draws": np.array(model.n_draws)}
    return session.run(list(outputs), given)


def assert_close(found, expected) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.std(expected))


def test_several_networks_with_a_noise_head(tmp_path):
    model = recipe(n_members=2, precision=NoiseHead()).fit(X, Y)
    mean, std = answers(model, tmp_path / "m.onnx", ("mean", "std"))
    expected = model.predict(X, return_std=True)
    assert_close(mean, expected[0])
    assert_close(std, expected[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"noise": "gaussian", "n_members": 3},
        {"noise": caveat.noise.Concrete()},
        {"input_drop_rate": 0.2, "precision": 0.1},
    ],
    ids=str,
)
@pytest.mark.parametrize("columns", [1, 2])
def test_recipes_of_a_regression(how, columns, tmp_path):
    y = Y if columns == 1 else np.stack([Y, -3 * Y], 1)
    model = recipe(**how).fit(X, y)
    wanted = ("mean", "std", "lower", "upper")
    mean, std, lower, upper = answers(model, tmp_path / "m.onnx", wanted)
    expected = model.predictive(X)
    assert_close(mean, expected.mean.numpy())
    assert_close(std, expected.std.numpy())
    assert_close(lower, expected.interval(0.95)[0].numpy())
    assert_close(upper, expected.interval(0.95)[1].numpy())


@pytest.mark.slow
def test_a_classifier(tmp_path):
    model = recipe(DropoutClassifier, n_members=2).fit(X, Y > 1e4)
    wanted = ("probs", "mutual_information")
    probs, information = answers(model, tmp_path / "m.onnx", wanted)
    expected = model.predictive(X)
    np.testing.assert_allclose(probs, expected.probs, atol=1e-6)
    np.testing.assert_allclose(information, expected.mutual_information, atol=1e-6)


@pytest.fixture(scope="module")
def fitted() -> DropoutRegressor:
    return recipe().fit(X, Y)


def test_what_an_estimator_knows_itself_is_refused(fitted, tmp_path):
    with pytest.raises(ParameterError, match="precision and output are for MCDropout"):
        caveat.export(fitted, X, tmp_path / "m.onnx", precision=1.0)
    with pytest.raises(ParameterError, match="has no outputs"):
        caveat.export(fitted, X, tmp_path / "m.onnx", outputs=("probs",))


def test_what_has_no_graph_is_refused(fitted, tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        caveat.export(recipe(), X, tmp_path / "m.onnx")
    plain = recipe(drop_rate=0.0, precision=1.0).fit(X, Y)
    with pytest.raises(UnsupportedModelError, match="networks without noise"):
        caveat.export(plain, X, tmp_path / "m.onnx")
    head = recipe(precision=NoiseHead(calibrate=False)).fit(X, Y)
    with pytest.raises(UnsupportedModelError, match="Intervals of a noise head"):
        caveat.export(head, X, tmp_path / "m.onnx", outputs=("lower",))
