"""Stages: what they accept, check and measure."""

import time

import numpy as np
import pytest
import torch

from caveat.decisions import Person, Stage
from caveat.errors import InputTypeError, ParameterError, ShapeError
from tests.decisions.cascade_models import Model, constant, rows_of


def test_a_stage_is_an_estimator_or_a_function():
    x = rows_of(9, 1)
    model = Model(0)
    for stage in (Stage(model), Stage(model.predictive)):
        predictive = stage(x)
        np.testing.assert_allclose(
            stage.doubt(predictive), 1 - predictive.probs.amax(-1), atol=1e-12
        )
    assert Stage(model).title == "Model"
    assert Stage(model, name="fast").title == "fast"
    assert Stage(constant(1.0)).title == "predict"


def test_doubt_may_be_another_score():
    x = rows_of(9, 1)
    stage = Stage(Model(0), score="entropy")
    predictive = stage(x)
    np.testing.assert_allclose(stage.doubt(predictive), predictive.entropy)


def test_seconds_per_row_are_measured():
    calls = []

    def sleepy(x):
        calls.append(len(x))
        time.sleep(0.002 * len(x))
        return Model(0).predictive(x)

    _, seconds = Stage(sleepy).timed(rows_of(50, 1))
    assert calls == [32, 50]
    assert 0.002 <= seconds < 0.2


def test_wrong_answers_are_refused():
    x = rows_of(5, 1)
    with pytest.raises(ShapeError, match=r"short must return one row .*5. Got 4"):
        Stage(lambda x: Model(0).predictive(x[1:]), name="short")(x)
    with pytest.raises(InputTypeError, match="must return a caveat Predictive"):
        Stage(lambda x: torch.zeros(5))(x)
    with pytest.raises(InputTypeError, match=r"method predictive.*Got str"):
        Stage("model")


def test_costs_and_risks_are_checked():
    with pytest.raises(ParameterError, match="cost must be finite and not negative"):
        Stage(Model(0), cost=-1.0)
    with pytest.raises(InputTypeError, match="cost must be a number"):
        Person("a lot")
    with pytest.raises(ParameterError, match="risk must be finite and not negative"):
        Person(1.0, risk=-0.1)
