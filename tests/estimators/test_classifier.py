"""DropoutClassifier: labels, probabilities, one code path with the fleet."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from caveat.errors import ParameterError, ShapeError
from caveat.estimators import DropoutClassifier, EarlyStopping, Prior, Schedule
from caveat.training import Rows, train
from tests.estimators.dropout_data import labelled, quick_classifier
from tests.statistics import assert_mean_is

_BATCHES = "networks learn from batches: two rows of weight 1 are not one of weight 2"
EXPECTED_FAILURES = {  # of scikit-learn's checks, with the reason
    "check_sample_weight_equivalence_on_dense_data": _BATCHES,
    "check_sample_weight_equivalence_on_sparse_data": _BATCHES,
}


def test_all_checks_of_scikit_learn():
    found = check_estimator(
        DropoutClassifier(schedule=Schedule(epochs=20), n_draws=20),
        expected_failed_checks=EXPECTED_FAILURES,
        on_fail=None,
        on_skip=None,
    )
    failed = {r["check_name"]: r["exception"] for r in found if r["status"] == "failed"}
    assert len(found) > 45 and failed == {}


def test_pipeline_grid_search_and_cross_validation():
    x, y = labelled()
    model = make_pipeline(
        StandardScaler(), quick_classifier(schedule=Schedule(epochs=40))
    )
    assert cross_val_score(model, x, y, cv=3).mean() > 0.8
    search = GridSearchCV(
        quick_classifier(),
        {"schedule": [Schedule(30, learning_rate=rate) for rate in (1e-6, 3e-2)]},
        scoring="neg_log_loss",
        cv=2,
    ).fit(x, y)
    assert search.best_params_["schedule"].learning_rate == 3e-2


def test_fit_is_the_training_of_a_fleet_of_one():
    x, y = labelled()
    model = quick_classifier(prior=Prior(0.5), input_drop_rate=0.1).fit(x, y)
    trainer = model._trainer(1.0, model._seed)
    numbers = np.searchsorted(["a", "b", "c"], y)
    problem = trainer.problem(x, numbers[:, None].astype(float), precision=1.0)
    scaling = model.scaling_
    members = problem.members(scaling, n_train=90, seed=model._seed)
    rows = Rows.of((x - x.mean(0)) / x.std(0), numbers)
    trained = train(members, [rows])
    for ours, theirs in zip(
        model.networks_[0].parameters(), trained.network(0).parameters(), strict=True
    ):
        assert torch.equal(ours, theirs)
    unit = 0.5**2 / 90  # l² / (tau N), tau = 1
    assert model.weight_decays_ == pytest.approx((unit / 0.9, unit / 0.95))
    assert model.bias_weight_decay_ == pytest.approx(unit)


@pytest.mark.parametrize(
    "labels", [("yes", "no"), (3, -1, 7), (True, False), (4.0, 2.0, 1.0)]
)
def test_labels_of_any_kind(labels):
    x, y = labelled(labels=labels)
    model = quick_classifier(schedule=Schedule(epochs=60)).fit(x, y)
    assert model.classes_.tolist() == sorted(set(labels))
    assert model.predict(x).dtype == y.dtype and model.score(x, y) > 0.8
    assert set(model.sample_y(x, 5).ravel().tolist()) <= set(labels)


def test_data_frames_with_categories():
    x, y = labelled()
    frame = pd.DataFrame(x, columns=["left", "right"])
    model = quick_classifier().fit(frame, pd.Series(y, dtype="category"))
    plain = quick_classifier().fit(x, y)
    assert np.array_equal(model.predict_proba(frame), plain.predict_proba(x))


def test_answers_are_those_of_the_predictive(monkeypatch):
    x, y = labelled()
    model = quick_classifier(n_members=2, noise="gaussian").fit(x, y)
    found = model.predictive(x)
    assert found.n_draws == 100
    monkeypatch.setattr("caveat.estimators.base._AT_ONCE", 3000)
    assert np.allclose(model.predict_proba(x), found.probs.numpy(), atol=1e-12)
    assert np.array_equal(model.predict(x), model.classes_[found.label.numpy()])
    numbers = torch.from_numpy(np.searchsorted(model.classes_, y))
    expected = found.log_prob(numbers).mean().item()
    assert model.log_likelihood(x, y) == pytest.approx(expected)
    by_hand = found.draws.softmax(-1).mean(0).numpy()
    assert np.allclose(model.predict_proba(x), by_hand, atol=1e-12)


def test_sampled_labels_have_the_probabilities():
    x, y = labelled()
    model = quick_classifier(n_draws=4000, drop_rate=0.3).fit(x, y)
    some = x[[0, 1, 2]] * 0.1
    drawn = torch.from_numpy(model.sample_y(some, 4000) == "b").double()
    probs = torch.from_numpy(model.predict_proba(some)[:, 1])
    assert_mean_is(drawn, probs, z=5 * 2**0.5)


def test_doubt_is_largest_between_the_classes():
    x, y = labelled(labels=("a", "b"))  # around (3, 0) and (-3, 0)
    model = quick_classifier(
        schedule=Schedule(epochs=60), n_members=3, drop_rate=0.2
    ).fit(x, y)
    inside, between = model.predictive([[3.0, 0.0], [0.0, 0.0]])
    assert between.entropy > 0.3 > 0.2 > inside.entropy
    assert between.mutual_information > inside.mutual_information


def test_early_stopping():
    x, y = labelled()
    noisy = np.random.default_rng(0).permutation(y)
    schedule = Schedule(epochs=300, early_stopping=EarlyStopping(patience=5))
    model = quick_classifier(schedule=schedule).fit(x, noisy)
    assert model.n_steps_[0] < 300


def test_bad_data():
    x, y = labelled()
    with pytest.raises(ParameterError, match="at least two classes"):
        quick_classifier().fit(x, np.full(90, "a"))
    with pytest.raises(ValueError, match="Unknown label type"):
        quick_classifier().fit(x, x[:, 0])
    with pytest.raises(ParameterError, match="Got all three"):
        quick_classifier(prior=Prior(0.1, 1e-3)).fit(x, y)
    model = quick_classifier().fit(x, y)
    with pytest.raises(ParameterError, match=r"seen in fit. Got \['z'\] beside"):
        model.log_likelihood(x[:2], ["a", "z"])
    with pytest.raises(ShapeError, match="one label per row, 3"):
        model.log_likelihood(x[:3], ["a", "b"])


def test_names_of_the_columns_of_probabilities():
    x, y = np.linspace(-2, 2, 20)[:, None], np.repeat(["no", "yes"], 10)
    model = DropoutClassifier(schedule=Schedule(epochs=1), random_state=0).fit(x, y)
    assert model.get_feature_names_out().tolist() == ["no", "yes"]
