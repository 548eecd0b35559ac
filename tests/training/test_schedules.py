"""Schedules: steps, rows held out, and the decay of the rate."""

import numpy as np
import pytest

from caveat.errors import InputTypeError, ParameterError
from caveat.training.schedules import (
    EarlyStopping,
    Schedule,
    constant,
    cosine,
    decay,
    inverse_decay,
    one_cycle,
)


def test_values_at_marked_places():
    half = np.array([0.0, 0.5, 1.0])
    assert constant(half).tolist() == [1, 1, 1]
    assert cosine(half) == pytest.approx([1, 0.5, 0])
    places = np.array([0.0, 0.05, 0.1, 0.55, 1.0])
    assert one_cycle(places) == pytest.approx([0, 0.5, 1, 0.5, 0])


def test_names():
    assert decay("cosine") is cosine
    with pytest.raises(ParameterError, match="'cosine'"):
        decay("steps")


def test_reference_values_of_the_papers_policy():
    rates = [inverse_decay(n, 0.01, gamma=1e-4, power=0.25) for n in (0, 1e4, 1e6)]
    expected = [0.01, 0.008408964152537, 0.003154421009013]
    assert rates == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("n_rows", "keep_last", "steps"),
    [(64, True, 2), (65, True, 3), (65, False, 2), (20, False, 1), (20, True, 1)],
)
def test_steps_of_an_epoch(n_rows, keep_last, steps):
    schedule = Schedule(epochs=7, keep_last=keep_last)
    assert schedule.steps_per_epoch(n_rows) == steps
    assert schedule.n_steps(n_rows) == 7 * steps


def test_rows_held_out_are_not_learned_from():
    assert Schedule().n_train(40) == 40
    assert Schedule(early_stopping=EarlyStopping(0.25)).n_train(40) == 30
    assert Schedule(early_stopping=EarlyStopping(0.01)).n_train(40) == 39
    with pytest.raises(ParameterError, match="holds out 2 of 2 rows and leaves none"):
        Schedule(early_stopping=EarlyStopping(0.9)).n_train(2)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"epochs": 0}, ParameterError, "epochs must be at least 1"),
        ({"batch_size": 2.5}, InputTypeError, "batch_size must be a whole number"),
        ({"learning_rate": 0.0}, ParameterError, "learning_rate must be finite and"),
        ({"decay": "linear"}, ParameterError, "decay must be one of"),
        ({"early_stopping": True}, InputTypeError, "early_stopping must be EarlySt"),
    ],
)
def test_bad_values_are_refused(values, error, message):
    with pytest.raises(error, match=message):
        Schedule(**values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"share": 1.0}, "share must lie strictly"),
        ({"patience": 0}, "patience must be at least 1"),
    ],
)
def test_bad_early_stopping_is_refused(values, message):
    with pytest.raises(ParameterError, match=message):
        EarlyStopping(**values)
