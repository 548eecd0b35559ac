"""DropoutSearchCV: a search with scikit-learn's manners."""

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import caveat.training.search as module
from caveat.engines import Engine
from caveat.errors import InputTypeError, ParameterError
from caveat.estimators import (
    DropoutClassifier,
    DropoutRegressor,
    DropoutSearchCV,
    EarlyStopping,
    NoiseHead,
    Prior,
    Schedule,
)
from caveat.training import LogUniform, NetworkSpec, Task, fit_ensembles, grid_search

FAST = DropoutRegressor((8,), schedule=Schedule(epochs=10), n_draws=20)


def some_rows(n_rows=60, *, outputs=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 2))
    y = 100.0 + 5.0 * np.sin(X[:, 0]) + 0.5 * rng.normal(size=n_rows)
    return X, y if outputs is None else np.stack([y, 1e-3 * y[::-1]][:outputs], 1)


def a_search(drop_rate=(0.01, 0.5), **how):
    return DropoutSearchCV(drop_rate, **({"estimator": FAST, "random_state": 0} | how))


@pytest.fixture
def trained(monkeypatch):
    """How many networks are trained for a search."""
    sizes = []

    def recorded(problems, **how):
        sizes.append(len(problems))
        return fit_ensembles(problems, **how)

    monkeypatch.setattr(module, "fit_ensembles", recorded)
    return sizes


@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix")
@parametrize_with_checks(
    [
        a_search(
            estimator=DropoutRegressor((8,), schedule=Schedule(epochs=40), n_draws=20)
        )
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_it_is_the_search_of_caveat_training():
    X, y = some_rows()
    found = a_search(input_drop_rate=[0.0, 0.2], lengthscale=[0.01, 1.0]).fit(X, y)
    grid = [
        NetworkSpec(
            (8,),
            drop_rate=rate,
            input_drop_rate=on_features,
            lengthscale=length,
            schedule=Schedule(epochs=10),
            n_draws=20,
        )
        for rate in (0.01, 0.5)
        for on_features in (0.0, 0.2)
        for length in (0.01, 1.0)
    ]
    seed = found.best_estimator_.random_state
    order = np.random.default_rng([seed, 0]).permutation(60)
    task = Task("rows", X[order], y[order, None])
    [choice] = grid_search([task], grid, seed=seed)
    best = choice.spec
    assert found.best_params_ == {
        "drop_rate": best.drop_rate,
        "input_drop_rate": best.input_drop_rate,
        "lengthscale": best.lengthscale,
    }
    assert found.best_score_ == pytest.approx(choice.score.log_likelihood, abs=1e-4)
    assert found.best_estimator_.prior == Prior(lengthscale=best.lengthscale)
    tau = found.best_estimator_.precision
    assert tau == pytest.approx(choice.score.scale, rel=5e-3)


def test_results_are_those_of_a_grid_search():
    X, y = some_rows()
    found = a_search(hidden=[(4,), (4, 4)]).fit(X, y)
    results = found.cv_results_
    assert results["params"] == [
        {"drop_rate": rate, "hidden": hidden}
        for rate in (0.01, 0.5)
        for hidden in ((4,), (4, 4))
    ]
    assert results["param_hidden"].tolist() == [(4,), (4, 4)] * 2
    assert results["param_drop_rate"].tolist() == [0.01, 0.01, 0.5, 0.5]
    best = int(np.argmax(results["mean_test_score"]))
    assert found.best_index_ == best and results["rank_test_score"][best] == 1
    assert sorted(results["rank_test_score"]) == [1, 2, 3, 4]
    assert found.best_score_ == results["mean_test_score"][best]
    assert found.best_params_ == results["params"][best]


def test_best_estimator_has_the_settings_and_the_precision_found():
    X, y = some_rows()
    found = a_search().fit(X, y)
    best = found.best_estimator_
    assert isinstance(best, DropoutRegressor)
    assert best.drop_rate == found.best_params_["drop_rate"]
    assert best.hidden == (8,) and best.schedule == Schedule(epochs=10)
    scale = found.cv_results_["precision_scale"][found.best_index_]
    assert best.precision_ == pytest.approx(scale / y.var())  # E18


def test_answers_are_those_of_the_best_estimator():
    X, y = some_rows()
    found = a_search().fit(X, y)
    best = found.best_estimator_
    for ours, its in zip(
        found.predict(X, return_std=True), best.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(ours, its)
    assert found.score(X, y) == best.score(X, y)
    assert found.log_likelihood(X, y) == best.log_likelihood(X, y)
    assert found.predictive(X).mean.equal(best.predictive(X).mean)


def test_score_is_in_the_units_of_y():
    """E19: targets a thousand times larger lose log 1000 nats."""
    X, y = some_rows()
    plain, large = a_search().fit(X, y), a_search().fit(X, 1000 * y)
    assert large.best_params_ == plain.best_params_
    shift = math.log(1000)
    assert large.best_score_ == pytest.approx(plain.best_score_ - shift, abs=1e-3)


def test_best_score_tells_of_new_rows():
    X, y = some_rows(400)
    how = {"estimator": DropoutRegressor((20,), schedule=Schedule(60), n_draws=100)}
    found = a_search(**how).fit(X[:200], y[:200])
    assert found.best_params_ == {"drop_rate": 0.01}
    assert found.log_likelihood(X[200:], y[200:]) == pytest.approx(
        found.best_score_, abs=0.3
    )


def test_several_outputs_of_different_sizes():
    X, y = some_rows(outputs=2)
    found = a_search().fit(X, y)
    assert found.predict(X).shape == (60, 2)
    ratio = found.best_estimator_.precision_ * y.var(0)
    assert ratio[0] == pytest.approx(ratio[1])


def test_noise_head():
    X, y = some_rows()
    head = clone(FAST).set_params(precision=NoiseHead())
    found = a_search(estimator=head).fit(X, y)
    assert found.best_estimator_.precision_ is None
    assert math.isfinite(found.best_score_)


def test_bayesian_optimisation():
    pytest.importorskip("optuna")
    X, y = some_rows()
    space = {"drop_rate": LogUniform(0.005, 0.5), "hidden": [(4,), (8,)]}
    found = a_search(space=space, n_trials=6, at_once=3).fit(X, y)
    assert found.best_params_.keys() == space.keys()
    assert len(found.cv_results_["params"]) == 6
    assert 0.005 <= found.best_params_["drop_rate"] <= 0.5


def test_epochs_are_varied_inside_the_schedule():
    pytest.importorskip("optuna")
    X, y = some_rows()
    space = {"epochs": LogUniform(2, 20), "lengthscale": LogUniform(0.01, 1.0)}
    base = clone(FAST).set_params(schedule=Schedule(epochs=99, batch_size=16))
    found = a_search(space=space, n_trials=4, at_once=2, estimator=base).fit(X, y)
    best = found.best_estimator_
    assert best.schedule == Schedule(found.best_params_["epochs"], batch_size=16)
    assert best.prior == Prior(found.best_params_["lengthscale"])
    assert best.n_steps_ == (best.schedule.n_steps(60),)
    assert all(2 <= p["epochs"] <= 20 for p in found.cv_results_["params"])


def test_same_random_state_same_result():
    X, y = some_rows()
    first, second = a_search().fit(X, y), a_search().fit(X, y)
    assert first.best_score_ == second.best_score_
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    assert a_search(random_state=1).fit(X, y).best_score_ != first.best_score_


def test_a_cache_spares_what_is_finished(tmp_path, trained):
    X, y = some_rows()
    how = {"cache": tmp_path / "scores"}
    a_search(**how).fit(X, y)
    a_search((0.01, 0.1, 0.5), **how).fit(X, y)
    assert trained == [10, 5]
    a_search(**how).fit(X, y**2)
    assert trained == [10, 5, 10]


def test_in_a_pipeline():
    X, y = some_rows()
    model = make_pipeline(StandardScaler(), a_search()).fit(X, y)
    assert model.predict(X).shape == (60,)


def test_the_estimator_is_not_changed():
    X, y = some_rows()
    before = FAST.get_params()
    a_search().fit(X, y)
    assert FAST.get_params() == before and not hasattr(FAST, "networks_")


BAD = {
    "number": (a_search(0.1), InputTypeError, "list of values"),
    "empty": (a_search([]), ParameterError, "at least one value"),
    "rate": (a_search([1.5]), ParameterError, "drop rate"),
    "widths": (a_search(hidden=(50,)), InputTypeError, "list of tuples"),
    "space": (a_search(space={"activation": ["relu"]}), ParameterError, "may hold"),
    "precision": (
        a_search(estimator=DropoutRegressor(precision=3.0)),
        ParameterError,
        "precision of the estimator must be None or NoiseHead",
    ),
    "precisions": (
        a_search(estimator=DropoutRegressor(precision=np.ones(2))),
        ParameterError,
        "precision of the estimator must be None or NoiseHead",
    ),
    "head": (
        a_search(estimator=DropoutRegressor(precision=NoiseHead(calibrate=False))),
        ParameterError,
        "precision of the estimator must be None or NoiseHead",
    ),
    "decay": (
        a_search(estimator=DropoutRegressor(prior=Prior(weight_decay=1e-3))),
        ParameterError,
        "prior of the estimator",
    ),
    "stopping": (
        a_search(
            estimator=DropoutRegressor(
                schedule=Schedule(early_stopping=EarlyStopping())
            )
        ),
        ParameterError,
        "schedule of the estimator must not stop early",
    ),
    "kind": (a_search(estimator=DropoutClassifier()), InputTypeError, "must be a Drop"),
    "cache": (a_search(cache="x", random_state=None), ParameterError, "pass an int"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_makes_no_sense_is_refused(case):
    search_cv, error, message = BAD[case]
    with pytest.raises(error, match=message):
        search_cv.fit(*some_rows())


@pytest.fixture
def jobs(monkeypatch):
    """What other processes would be asked for; here one after the other."""
    asked = []

    def spread(run, pairs, n_workers=None, **how):
        asked.append({"n_workers": n_workers, **how})
        for pair in pairs:
            asked[-1].setdefault("done", []).append(pair[1].drop_rate)
            yield pair, run(pair)

    monkeypatch.setattr(module, "spread", spread)
    return asked


@pytest.mark.parametrize("space", [None, {"drop_rate": [0.01, 0.1, 0.5]}])
def test_a_candidate_is_a_job_if_there_are_workers(space, jobs):
    X, y = some_rows()
    how = {"space": space, "n_trials": 3, "at_once": 2}
    if space is not None:
        pytest.importorskip("optuna")
    here = a_search(**how).fit(X, y)
    assert not jobs
    there = a_search(**how, n_workers=2, engine="ray", address="auto").fit(X, y)
    assert jobs[0]["n_workers"] == 2 and jobs[0]["engine"] is Engine.ray
    assert jobs[0]["address"] == "auto"
    assert there.best_params_ == here.best_params_
    for name in ("mean_test_score", "precision_scale"):
        np.testing.assert_allclose(there.cv_results_[name], here.cv_results_[name])


def test_jobs_that_were_done_are_in_the_store(jobs, tmp_path, monkeypatch):
    """Stopped after the first one: the others are asked for, and it is not."""
    X, y = some_rows()
    own = {"cache": tmp_path / "scores.jsonl", "n_workers": 2}
    validate, done = module._validate_alone, []

    def stopped(seed, folds, pair):
        if done:
            raise KeyboardInterrupt
        done.append(pair[1].drop_rate)
        return validate(seed, folds, pair)

    with monkeypatch.context() as patch:
        patch.setattr(module, "_validate_alone", stopped)
        with pytest.raises(KeyboardInterrupt):
            a_search((0.01, 0.1, 0.5), **own).fit(X, y)
    whole = a_search((0.01, 0.1, 0.5), **own).fit(X, y)
    assert done == [0.01] and jobs[-1]["done"] == [0.1, 0.5]
    alone = a_search((0.01, 0.1, 0.5), cache=own["cache"]).fit(X, y)  # the same store
    assert np.array_equal(
        *(found.cv_results_["mean_test_score"] for found in (whole, alone))
    )


def test_engines_of_a_search_are_checked():
    X, y = some_rows()
    with pytest.raises(ParameterError, match="engine must be one of"):
        a_search(engine="spark").fit(X, y)
    with pytest.raises(ParameterError, match="n_workers"):
        a_search(n_workers=0).fit(X, y)
    with pytest.raises(ParameterError, match="address is of a Ray cluster"):
        a_search(n_workers=2, address="auto").fit(X, y)


@pytest.mark.slow
def test_workers_find_what_one_process_finds():
    X, y = some_rows()
    here, there = (a_search(n_workers=n).fit(X, y) for n in (1, 2))
    np.testing.assert_allclose(
        here.cv_results_["mean_test_score"], there.cv_results_["mean_test_score"]
    )
