"""Whatever is fitted comes back the same from a file, from pickle and from a copy."""

import copy
import json
import pickle
import zipfile

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch import nn

import caveat
from caveat import decisions, evaluation
from caveat.errors import CaveatWarning, DataError, InputTypeError, ParameterError
from caveat.estimators import (
    BayesianDropoutClassifier,
    BayesianDropoutRegression,
    BayesianDropoutRegressionCV,
    DropoutClassifier,
    DropoutRegressor,
    DropoutSearchCV,
    EarlyStopping,
    NoiseHead,
    PBPRegressor,
    Prior,
    Schedule,
)
from caveat.estimators.tables.noise import FarNoise
from caveat.training.bayesian import Choices, LogUniform
from tests.estimators.dropout_data import (
    labelled,
    quick_classifier,
    quick_regressor,
    rows,
)

X, Y = rows()
XC, YC = labelled()


def again(model, tmp_path):
    caveat.save(model, tmp_path / "m.caveat")
    return caveat.load(tmp_path / "m.caveat")


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
    model = quick_regressor(**parameters).fit(X, Y)
    found = again(model, tmp_path)
    assert found.get_params() == model.get_params()
    for a, b in zip(
        model.predict(X, return_std=True),
        found.predict(X, return_std=True),
        strict=True,
    ):
        assert np.array_equal(a, b)
    assert np.array_equal(model.sample_y(X, 3), found.sample_y(X, 3))
    assert found.log_likelihood(X, Y) == model.log_likelihood(X, Y)
    names = [n for n in vars(model) if n.endswith("_")]
    assert names and set(vars(found)) == set(vars(model))
    for name in set(names) - {"networks_", "scaling_"}:
        assert getattr(found, name) == getattr(model, name), name
    for ours, theirs in zip(model.networks_, found.networks_, strict=True):
        assert repr(ours) == repr(theirs)
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert torch.equal(p, q)


def test_a_share_of_draws_for_far_rows_comes_back(tmp_path):
    x = np.random.default_rng(0).normal(size=(400, 2))
    y = np.where(np.arange(400) % 60 == 1, 1e6, 1.0)
    model = caveat.DropoutRegressor(preset="fast", random_state=0, progress=False)
    model.fit(x, y)
    assert isinstance(model._table.laws[0], FarNoise)
    found = again(model, tmp_path)
    assert found._table.laws == model._table.laws


def test_several_outputs_and_names_come_back(tmp_path):
    x, y = rows(n_outputs=2)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    state = np.random.RandomState(0)
    model = quick_regressor(random_state=state).fit(frame, y)
    found = again(model, tmp_path)
    assert np.array_equal(found.precision_, model.precision_)
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.array_equal(found.predict(frame), model.predict(frame))
    assert found.random_state is None


@pytest.mark.parametrize(
    "labels", [("yes", "no"), (3, -1, 7), (True, False), (4.0, 2.0, 1.0)]
)
@pytest.mark.parametrize("kind", ["array", "object"])
def test_a_classifier_comes_back(labels, kind, tmp_path):
    x, y = labelled(labels=labels)
    if kind == "object":
        y = np.array([str(v) for v in y], dtype=object)
    model = quick_classifier().fit(x, y)
    found = again(model, tmp_path)
    assert found.classes_.dtype == model.classes_.dtype
    assert np.array_equal(found.classes_, model.classes_)
    assert np.array_equal(found.predict_proba(x), model.predict_proba(x))
    assert np.array_equal(found.predict(x), model.predict(x))


def test_keys_that_are_no_texts_come_back(tmp_path):
    x, y = labelled(labels=(1, 2))
    model = quick_classifier(class_weight={1: 1.0, 2: 3.0}).fit(x, y)
    assert again(model, tmp_path).class_weight == {1: 1.0, 2: 3.0}


LINEAR = [
    (BayesianDropoutRegression(0.2), X, Y),
    (BayesianDropoutRegression(0.2, groups=[0, 0, 1]), np.asfortranarray(X), Y),
    (BayesianDropoutRegression(0.2, noise="gaussian"), sparse.csr_matrix(X), Y),
    (BayesianDropoutRegression([0.1, 0.2, 0.3], drop_to="mean"), X, Y),
    (BayesianDropoutRegression(0.1, variance_prior=(2.0, 1.0)), sparse.csr_array(X), Y),
    (BayesianDropoutRegressionCV((0.0, 0.5)), X, Y),
    (BayesianDropoutClassifier(0.2), XC, YC),
]


@pytest.mark.parametrize(("model", "x", "y"), LINEAR, ids=lambda v: str(v)[:40])
def test_a_linear_model_comes_back(model, x, y, tmp_path):
    model = copy.deepcopy(model).fit(x, y)
    found = again(model, tmp_path)
    assert set(vars(found)) == set(vars(model))
    for name in ("coef_", "effective_coef_", "intercept_"):
        assert np.array_equal(getattr(found, name), getattr(model, name)), name
    assert np.array_equal(found.predict(x), model.predict(x))
    if hasattr(model, "predict_proba"):
        assert np.array_equal(found.predict_proba(x), model.predict_proba(x))
    else:
        ours, theirs = (m.predictive(x) for m in (model, found))
        assert torch.equal(ours.std, theirs.std)
        assert found.log_evidence() == model.log_evidence()


@pytest.mark.parametrize("space", [None, {"drop_rate": LogUniform(0.01, 0.1)}])
def test_a_search_comes_back(space, tmp_path):
    if space is not None:
        pytest.importorskip("optuna")
        space["hidden"] = Choices((5,), (4, 4))
    model = DropoutSearchCV(
        drop_rate=[0.01, 0.1],
        estimator=quick_regressor(),
        space=space,
        n_trials=2,
        at_once=2,
        random_state=0,
    ).fit(X, Y)
    found = again(model, tmp_path)
    assert found.best_params_ == model.best_params_
    assert np.array_equal(found.predict(X), model.predict(X))
    assert set(found.cv_results_) == set(model.cv_results_)
    assert found.cv_results_["params"] == model.cv_results_["params"]


def policies():
    held_out = quick_regressor().fit(X, Y).predictive(X)
    sure = quick_classifier().fit(XC, YC).predictive(XC)
    numbers = np.unique(YC, return_inverse=True)[1]
    return [
        (evaluation.calibrate(held_out, Y), held_out),
        (evaluation.calibrate(sure, numbers), sure),
        (decisions.conformal(held_out, Y), held_out),
        (
            decisions.conformal(held_out, Y, score=decisions.QuantileResidual(0.8)),
            held_out,
        ),
        (decisions.conformal(sure, numbers, score=decisions.AdaptiveSets(3)), sure),
        (decisions.defer(held_out, Y, target=decisions.Coverage(0.8)), held_out),
        (decisions.defer(sure, numbers, target=decisions.Costs(1.0, 0.2)), sure),
    ]


def test_policies_come_back(tmp_path):
    for policy, predictive in policies():
        found = again(policy, tmp_path)
        assert repr(found) == repr(policy)
        ours, theirs = (p.apply(predictive) for p in (policy, found))
        if hasattr(ours, "reasons"):
            assert ours.reasons == theirs.reasons
        else:
            assert torch.equal(
                ours.mean if "mean" in dir(ours) else ours.probs,
                theirs.mean if "mean" in dir(theirs) else theirs.probs,
            )


def test_a_score_that_is_code_is_refused(tmp_path):
    held_out = quick_regressor().fit(X, Y).predictive(X)
    policy = decisions.defer(
        held_out, Y, target=decisions.Coverage(0.8), score=lambda p: p.std
    )
    with pytest.raises(InputTypeError, match=r"model\.score must be made of numbers"):
        caveat.save(policy, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_network_of_moments_comes_back(tmp_path):
    model = PBPRegressor(hidden=(3,), n_epochs=2, random_state=0).fit(X, Y)
    found = again(model, tmp_path)
    assert set(vars(found)) == set(vars(model))
    for ours, theirs in zip(
        model.predict(X, return_std=True),
        found.predict(X, return_std=True),
        strict=True,
    ):
        assert np.array_equal(ours, theirs)


ALL = [
    *((m, x, y) for m, x, y in LINEAR),
    (PBPRegressor(hidden=(3,), n_epochs=2, random_state=0), X, Y),
    (quick_regressor(), X, Y),
    (quick_classifier(), XC, YC),
    (DropoutRegressor(preset="fast", random_state=0), X, Y),
    (DropoutClassifier(preset="fast", random_state=0), XC, YC),
]


@pytest.mark.parametrize(("model", "x", "y"), ALL, ids=lambda v: str(v)[:30])
def test_pickle_joblib_and_copies(model, x, y, tmp_path):
    model = copy.deepcopy(model).fit(x, y)
    expected = model.predict(x)
    joblib.dump(model, tmp_path / "j")
    for found in (
        pickle.loads(pickle.dumps(model)),
        joblib.load(tmp_path / "j"),
        copy.deepcopy(model),
        copy.copy(model),
    ):
        assert np.array_equal(found.predict(x), expected)


# Networks of users


class Tied(nn.Module):
    """Two names for one weight, a buffer that is saved, and one that is not."""

    def __init__(self, rate=0.3, width=4):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.second.weight = self.first.weight
        self.drop = nn.Dropout(rate)
        self.norm = nn.BatchNorm1d(width)
        self.register_buffer("scale", torch.ones(1), persistent=False)

    def forward(self, x):
        return self.scale * self.norm(self.second(self.drop(self.first(x))))


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_network_comes_back(wrapped, tmp_path):
    torch.manual_seed(0)
    net = Tied()
    net.scale.fill_(3.0)
    net.norm.running_mean.fill_(0.5)
    path, x = tmp_path / "net.caveat", torch.randn(5, 4)
    mc = caveat.MCDropout(net, seed=7, stratified=False)
    caveat.save(mc if wrapped else net, path)
    found = caveat.load(path, model=Tied())
    if not wrapped:
        found = caveat.MCDropout(found, seed=7, stratified=False)
    assert torch.equal(found.draws(x, n_draws=3), mc.draws(x, n_draws=3))
    assert found.model.first.weight is found.model.second.weight


def test_a_network_needs_its_class_and_none_is_imported(tmp_path):
    caveat.save(Tied(), tmp_path / "m")
    with pytest.raises(ParameterError, match=r"test_saving\.Tied(.|\n)*model=Tied"):
        caveat.load(tmp_path / "m")
    with pytest.raises(InputTypeError, match="must be a torch"):
        caveat.load(tmp_path / "m", model="Tied")
    caveat.save(quick_regressor().fit(X, Y), tmp_path / "e")
    with pytest.raises(ParameterError, match="holds a DropoutRegressor"):
        caveat.load(tmp_path / "e", model=Tied())


def test_another_network_is_refused_and_left_alone(tmp_path):
    caveat.save(Tied(), tmp_path / "m")
    for other, why in [
        (Tied(width=3), "must be of shape"),
        (Tied().double(), "float64"),
        (nn.Linear(4, 4), "lacks"),
    ]:
        before = copy.deepcopy(other.state_dict())
        with pytest.raises(ParameterError, match=why):
            caveat.load(tmp_path / "m", model=other)
        assert all(torch.equal(before[n], v) for n, v in other.state_dict().items())


def test_another_rate_is_told(tmp_path):
    caveat.save(Tied(0.3), tmp_path / "m")
    with pytest.warns(CaveatWarning, match=r"'drop' of model is Dropout\(p=0\.5"):
        caveat.load(tmp_path / "m", model=Tied(0.5))


# What is written


def test_only_numbers_and_text_are_written(tmp_path):
    caveat.save(quick_regressor(precision=4.0).fit(X, Y), tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as file:
        assert sorted(file.namelist()) == ["caveat.json", "tensors.safetensors"]
        description = json.loads(file.read("caveat.json"))
    assert description["format"] == 1 and description["kind"] == "DropoutRegressor"
    parameters = dict(description["content"]["fields"]["parameters"]["pairs"])
    assert parameters["schedule"]["fields"]["epochs"] == 10


def test_the_same_model_is_the_same_bytes(tmp_path):
    model = quick_regressor().fit(X, Y)
    caveat.save(model, tmp_path / "a")
    caveat.save(caveat.load(tmp_path / "a"), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_loading_leaves_the_generators_alone(tmp_path):
    caveat.save(quick_regressor().fit(X, Y), tmp_path / "m")
    before = torch.get_rng_state()
    caveat.load(tmp_path / "m")
    assert torch.equal(torch.get_rng_state(), before)


def test_what_cannot_be_saved_is_refused(tmp_path):
    model = quick_regressor(precision=4.0).fit(X, Y)
    with pytest.raises(ParameterError, match="must be a file"):
        caveat.save(model, tmp_path)
    with pytest.raises(ParameterError, match="does not; make it"):
        caveat.save(model, tmp_path / "none" / "m")
    model.set_params(progress=object())
    with pytest.raises(InputTypeError, match=r"progress must be made of numbers"):
        caveat.save(model, tmp_path / "model")
    with pytest.raises(ValueError, match="not fitted yet"):
        caveat.save(quick_regressor(), tmp_path / "model")
    with pytest.raises(InputTypeError, match="Got int"):
        caveat.save(3, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_stays_until_the_new_one_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "m"
    caveat.save(quick_regressor().fit(X, Y), path)
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(DataError, match="could not be written: No space left"):
        caveat.save(quick_regressor(random_state=1).fit(X, Y), path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
