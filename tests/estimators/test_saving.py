"""Saved and loaded estimators are the same; damaged files are refused."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from caveat.errors import DataError, InputTypeError, ParameterError
from caveat.estimators import (
    DropoutClassifier,
    DropoutRegressor,
    EarlyStopping,
    NoiseHead,
    Prior,
    Schedule,
)
from tests.estimators.dropout_data import (
    labelled,
    quick_classifier,
    quick_regressor,
    rows,
)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"precision": NoiseHead(), "n_members": 2},
        {"precision": NoiseHead(calibrate=False), "schedule": None, "hidden": (2,)},
        {"noise": "gaussian", "hidden": (4, 3), "activation": "cos"},
        {"hidden": (), "input_drop_rate": 0.1},
        {"drop_rate": 0.0, "precision": 4.0},
        {"prior": Prior(1e-2, 1e-3)},
        {"schedule": Schedule(5, 16, 1e-3, "one_cycle", True, EarlyStopping(0.2, 3))},
    ],
    ids=str,
)
def test_a_regressor_comes_back(parameters, tmp_path):
    x, y = rows()
    model = quick_regressor(**parameters).fit(x, y)
    model.save(tmp_path / "model")
    again = DropoutRegressor.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    for a, b in zip(
        model.predict(x, return_std=True),
        again.predict(x, return_std=True),
        strict=True,
    ):
        assert np.array_equal(a, b)
    assert np.array_equal(model.sample_y(x, 3), again.sample_y(x, 3))
    assert again.log_likelihood(x, y) == model.log_likelihood(x, y)
    names = [n for n in vars(model) if n.endswith("_")]
    assert names and set(vars(again)) == set(vars(model))
    for name in set(names) - {"networks_", "scaling_"}:
        assert getattr(again, name) == getattr(model, name), name
    for ours, theirs in zip(model.networks_, again.networks_, strict=True):
        assert repr(ours) == repr(theirs)
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert torch.equal(p, q)


def test_several_outputs_and_names_come_back(tmp_path):
    x, y = rows(n_outputs=2)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    state = np.random.RandomState(0)
    model = quick_regressor(random_state=state).fit(frame, y)
    model.save(str(tmp_path))
    again = DropoutRegressor.load(str(tmp_path))
    assert np.array_equal(again.precision_, model.precision_)
    assert again.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.array_equal(again.predict(frame), model.predict(frame))
    assert again.random_state is None


@pytest.mark.parametrize(
    "labels", [("yes", "no"), (3, -1, 7), (True, False), (4.0, 2.0, 1.0)]
)
@pytest.mark.parametrize("kind", ["array", "object"])
def test_a_classifier_comes_back(labels, kind, tmp_path):
    x, y = labelled(labels=labels)
    if kind == "object":
        y = np.array([str(v) for v in y], dtype=object)
    model = quick_classifier().fit(x, y)
    model.save(tmp_path)
    again = DropoutClassifier.load(tmp_path)
    assert again.classes_.dtype == model.classes_.dtype
    assert np.array_equal(again.classes_, model.classes_)
    assert np.array_equal(again.predict_proba(x), model.predict_proba(x))
    assert np.array_equal(again.predict(x), model.predict(x))


@pytest.fixture
def saved(tmp_path):
    quick_regressor(precision=4.0).fit(*rows()).save(tmp_path)
    return tmp_path


def test_only_numbers_and_text_are_written(saved):
    assert sorted(p.name for p in saved.iterdir()) == [
        "estimator.json",
        "tensors.safetensors",
    ]
    description = json.loads((saved / "estimator.json").read_text())
    assert description["estimator"] == "DropoutRegressor"
    tensors = load_file(saved / "tensors.safetensors")
    assert tensors["network.0.0.weight"].shape == (10, 3)
    assert tensors["x_mean"].dtype == torch.float64


def test_loading_leaves_the_generators_alone(saved):
    before = torch.get_rng_state()
    DropoutRegressor.load(saved)
    assert torch.equal(torch.get_rng_state(), before)


def test_groups_are_written_plainly(saved):
    description = json.loads((saved / "estimator.json").read_text())
    assert description["parameters"]["schedule"] == {
        "kind": "Schedule",
        "epochs": 10,
        "batch_size": 32,
        "learning_rate": 0.01,
        "decay": "cosine",
        "keep_last": False,
        "early_stopping": None,
    }


def test_a_kind_that_is_not_known_is_refused(saved):
    description = json.loads((saved / "estimator.json").read_text())
    description["parameters"]["schedule"] = {"kind": "Popen", "args": "ls"}
    (saved / "estimator.json").write_text(json.dumps(description))
    with pytest.raises(DataError, match="'Popen'"):
        DropoutRegressor.load(saved)


def test_another_kind_is_refused(saved):
    with pytest.raises(ParameterError, match="not a DropoutClassifier"):
        DropoutClassifier.load(saved)


@pytest.mark.parametrize("name", ["estimator.json", "tensors.safetensors"])
def test_absent_and_damaged_files(saved, name):
    (saved / name).write_text("no such thing")
    with pytest.raises(DataError, match=f"{name} is damaged"):
        DropoutRegressor.load(saved)
    (saved / name).unlink()
    with pytest.raises(DataError, match=f"{name} is absent"):
        DropoutRegressor.load(saved)


def change(path, **changes):
    description = json.loads(path.read_text())
    path.write_text(json.dumps(description | changes))


def test_another_format_is_refused(saved):
    change(saved / "estimator.json", format=99)
    with pytest.raises(DataError, match="must be of format 1"):
        DropoutRegressor.load(saved)


def test_what_is_missing_inside_is_named(saved):
    change(saved / "estimator.json", state={"n_features_in": 3})
    with pytest.raises(DataError, match="damaged or incomplete: KeyError"):
        DropoutRegressor.load(saved)
    (saved / "estimator.json").write_text("[]")
    with pytest.raises(DataError, match="does not describe an estimator"):
        DropoutRegressor.load(saved)


def test_weights_of_another_shape_are_refused(saved):
    tensors = load_file(saved / "tensors.safetensors")
    name = max(n for n in tensors if n.startswith("network.0") and "weight" in n)
    tensors[name] = torch.zeros(2, 10)
    save_file(tensors, saved / "tensors.safetensors")
    with pytest.raises(DataError, match=r"Network 0 does not fit(.|\n)*\[2, 10\]"):
        DropoutRegressor.load(saved)


def test_what_cannot_be_saved_is_refused(tmp_path):
    model = quick_regressor(precision=4.0).fit(*rows())
    (tmp_path / "file").touch()
    with pytest.raises(ParameterError, match="path must be a folder"):
        model.save(tmp_path / "file")
    model.set_params(progress=object())
    with pytest.raises(InputTypeError, match="progress must be made of numbers"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    with pytest.raises(ValueError, match="not fitted yet"):
        quick_regressor().save(tmp_path / "model")
