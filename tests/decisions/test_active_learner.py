"""The loop: asking, telling, stopping, going on."""

import numpy as np
import pytest
import torch

from caveat.decisions import (
    ActiveLearner,
    BatchBALD,
    Diverse,
    RandomChoice,
    TopScore,
    acquisition,
)
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.predictive import GaussianPredictive

X = np.linspace(0, 1, 41)[:, None]
Y = np.sin(6 * X[:, 0])


class Nearest:
    """Predicts the nearest label; doubts by the distance to it."""

    fits = 0

    def fit(self, x, y):
        type(self).fits += 1
        self.x, self.y = np.asarray(x), np.asarray(y)
        return self

    def predictive(self, x):
        apart = np.abs(np.asarray(x) - self.x.T)
        mean, doubt = self.y[apart.argmin(1)], apart.min(1)
        draws = torch.from_numpy(np.stack([mean - doubt, mean + doubt]))
        return GaussianPredictive.from_draws(draws, precision=1.0)

    def score(self):
        return -float(np.abs(self.predictive(X).mean.numpy() - Y).mean())


class AnyChoice:
    """An acquisition of someone else."""

    def __init__(self):
        self.inner = object()

    def choose(self, predictive, n_rows, *, seed=0):
        return np.arange(n_rows)


def make(path=None, **changes):
    settings = {"acquisition": "epistemic_std", "n_per_step": 2, "seed": 3}
    learner = ActiveLearner(
        Nearest(), X, evaluate=Nearest.score, path=path, **(settings | changes)
    )
    if not len(learner.rows):
        learner.tell([0, 1], Y[[0, 1]])
    return learner


def oracle(rows):
    return Y[rows]


def test_asks_where_doubt_is_highest():
    learner = make()
    assert learner.ask().tolist() == [40, 39]
    assert learner.ask().tolist() == [40, 39]  # nothing was told
    learner.tell([40], Y[[40]])
    assert learner.ask().tolist() == [39]  # still waiting
    learner.tell([39], Y[[39]])
    assert learner.ask()[0] == 20
    assert learner.curve.n_labels == (2, 4)


def test_run_has_all_labels_and_a_curve():
    learner = make()
    learner.run(oracle, n_labels=9)
    assert len(learner.rows) == 9 == len(set(learner.rows.tolist()))
    np.testing.assert_array_equal(learner.labels, Y[learner.rows])
    assert learner.curve.n_labels == (2, 4, 6, 8, 9)
    assert learner.curve.score[-1] == learner.model.score()
    assert learner.curve.score[-1] > learner.curve.score[0]


def test_estimator_and_pool_are_not_changed():
    estimator, pool = Nearest(), X.copy()
    learner = ActiveLearner(estimator, pool, acquisition="std")
    learner.tell([5], [0.0])
    learner.run(oracle, n_labels=20)
    assert not hasattr(estimator, "x")
    np.testing.assert_array_equal(pool, X)


def test_doubt_beats_random():
    doubt, chance = (make(n_per_step=1, acquisition=a) for a in ("std", RandomChoice()))
    for learner in (doubt, chance):
        learner.run(oracle, n_labels=12)
    assert doubt.curve.score[-1] > chance.curve.score[-1]


@pytest.mark.parametrize("stop", [4, 7, 8])
def test_a_stopped_run_goes_on_as_if_it_had_not(tmp_path, stop):
    whole = make(acquisition=RandomChoice(), n_candidates=11)
    whole.run(oracle, n_labels=13)
    path = tmp_path / "run.json"
    make(path, acquisition=RandomChoice(), n_candidates=11).run(oracle, n_labels=stop)
    again = make(path, acquisition=RandomChoice(), n_candidates=11)
    again.run(oracle, n_labels=13)
    if stop % 2 == 0:  # the steps fall on the same numbers of labels
        np.testing.assert_array_equal(again.rows, whole.rows)
        assert again.curve == whole.curve
    assert len(again.rows) == 13
    assert make(path, acquisition=RandomChoice(), n_candidates=11).curve == again.curve


def test_a_question_survives_without_another_fit(tmp_path):
    path = tmp_path / "run.json"
    asked = make(path).ask()
    before = Nearest.fits
    np.testing.assert_array_equal(make(path).ask(), asked)
    assert Nearest.fits == before


def test_interrupted_oracle_loses_nothing(tmp_path):
    path = tmp_path / "run.json"
    calls = []

    def flaky(rows):
        calls.append(rows)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return Y[rows]

    with pytest.raises(KeyboardInterrupt):
        make(path).run(flaky, n_labels=12)
    again = make(path)
    again.run(oracle, n_labels=12)
    whole = make()
    whole.run(oracle, n_labels=12)
    np.testing.assert_array_equal(again.rows, whole.rows)
    assert again.curve == whole.curve


def test_target_ends_the_run():
    learner = make()
    learner.run(oracle, n_labels=41, target=-0.1)
    assert learner.curve.score[-1] >= -0.1 > learner.curve.score[-2]
    assert len(learner.rows) == learner.curve.n_labels[-1] < 41


def test_pool_ends():
    learner = make(n_per_step=30)
    learner.run(oracle, n_labels=1000)
    assert sorted(learner.rows.tolist()) == list(range(41))
    with pytest.raises(ParameterError, match="All rows of the pool have a label"):
        learner.ask()


def test_candidates_are_a_part_of_the_pool():
    seen = []

    def remember(predictive):
        seen.append(len(predictive))
        return predictive.std

    learner = make(acquisition=remember, n_candidates=10)
    learner.run(oracle, n_labels=8)
    assert seen == [10, 10, 10]


@pytest.mark.parametrize(
    "chooser",
    [RandomChoice(), TopScore(np.std), BatchBALD(7), Diverse("std"), AnyChoice()],
    ids=lambda chooser: type(chooser).__name__,
)
def test_settings_in_the_file_hold_no_addresses(tmp_path, chooser):
    path = tmp_path / "run.json"
    make(path, acquisition=chooser)
    assert "0x" not in path.read_text()
    assert len(make(path, acquisition=chooser).rows) == 2


def test_tensors_and_texts(tmp_path):
    pool = torch.randn(20, 1, 2, 2, generator=torch.Generator().manual_seed(0))

    class Texts:
        def fit(self, x, y):
            assert x.shape[1:] == (1, 2, 2)
            assert set(y) <= {"a", "b"}

        def predictive(self, x):
            return GaussianPredictive.from_draws(x.reshape(1, len(x), 4), precision=1.0)

    learner = ActiveLearner(
        Texts(), pool, acquisition=lambda p: p.mean.sum(1), path=tmp_path / "a.json"
    )
    learner.tell([0, 1], ["a", "b"])
    learner.run(lambda rows: np.where(rows % 2, "a", "b"), n_labels=15)
    assert learner.labels.dtype.kind == "U"
    assert len(learner.curve) == 0


def test_bad_input(tmp_path):
    learner = make()
    with pytest.raises(ParameterError, match="Got 1, which has a label"):
        learner.tell([3, 1], [0.0, 0.0])
    with pytest.raises(ParameterError, match="Got 41, which is not in the pool"):
        learner.tell([41], [0.0])
    with pytest.raises(ShapeError, match=r"one label for each of 2 rows. Got 1"):
        learner.tell([3, 4], [0.0])
    with pytest.raises(InputTypeError, match="rows must be one axis of row numbers"):
        learner.tell([0.5], [0.0])
    with pytest.raises(ParameterError, match="no labels to start from"):
        ActiveLearner(Nearest(), X, acquisition="std").ask()
    with pytest.raises(InputTypeError, match="object has no fit"):
        ActiveLearner(object(), X, acquisition="std")
    with pytest.raises(ParameterError, match="must be at least n_per_step"):
        make(n_candidates=1)
    path = tmp_path / "run.json"
    make(path)
    with pytest.raises(ParameterError, match="acquisition='TopScore"):
        make(path, acquisition=acquisition.epistemic_variance)


def test_a_predictive_of_other_rows_is_refused():
    class Short(Nearest):
        def predictive(self, x):
            return super().predictive(x[:3])

    learner = ActiveLearner(Short(), X, acquisition=TopScore("std"))
    learner.tell([0], [0.0])
    with pytest.raises(ShapeError, match=r"one row per candidate, 40. Got 3"):
        learner.ask()
    Short.predictive = lambda self, x: np.zeros(len(x))
    with pytest.raises(InputTypeError, match="must return a caveat Predictive"):
        learner.ask()
