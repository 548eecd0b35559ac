"""All stages on all rows: losses, kinds, costs."""

import numpy as np
import pytest
import torch

from caveat.decisions import Person, Stage
from caveat.decisions.cascade.trial import default_loss, try_all
from caveat.errors import InputTypeError, ShapeError
from caveat.predictive import CategoricalPredictive, GaussianPredictive
from tests.decisions.cascade_models import Model, constant, rows_of, stages

X = rows_of(30, 2)
TRUTH = np.ones(30, dtype=int)


def test_loss_of_labels_and_values():
    logits = torch.tensor([[[2.0, 0.0], [0.0, 2.0]]])
    labels = CategoricalPredictive.from_logits(logits)
    assert default_loss(labels, [0, 0]).tolist() == [0.0, 1.0]
    values = GaussianPredictive.from_draws(torch.zeros(2, 3), precision=1.0)
    assert default_loss(values, np.array([0.0, 1.0, -2.0])).tolist() == [0, 1, 4]


def test_outcomes_are_not_put_into_another_order():
    """A transposed table has as many numbers, and they are those of other rows."""
    values = GaussianPredictive.from_draws(torch.zeros(2, 3, 2), precision=1.0)
    with pytest.raises(ShapeError, match=r"Got \(2, 3\)"):
        default_loss(values, np.arange(6.0).reshape(2, 3))
    with pytest.raises(InputTypeError, match="real numbers"):
        default_loss(values, [[True, False]] * 3)
    labels = CategoricalPredictive.from_logits(torch.zeros(1, 2, 3))
    with pytest.raises(InputTypeError, match="number them"):
        default_loss(labels, ["a", "b"])


def test_trial_holds_doubt_loss_and_cost():
    trial, of_labels = try_all(
        [*stages(2), Person(100.0, risk=0.25)], X, TRUTH, loss=default_loss, costs=None
    )
    assert of_labels
    assert trial.doubt.shape == (2, 30)
    np.testing.assert_array_equal(trial.loss[:2], [X[:, 1] > 0, X[:, 3] > 0])
    np.testing.assert_array_equal(trial.loss[2], 0.25)
    assert trial.cost.tolist() == [1.0, 10.0, 100.0]
    np.testing.assert_allclose(trial.doubt[0], 0.05 + 0.4 * X[:, 0], atol=1e-12)


def test_stages_must_agree():
    mixed = [Stage(Model(0), cost=1), Stage(constant(1.0), cost=2, name="mean")]
    with pytest.raises(InputTypeError, match="mean a GaussianPredictive"):
        try_all(mixed, X, TRUTH, loss=default_loss, costs=None)

    def three(x):
        return CategoricalPredictive.from_logits(torch.zeros(1, len(x), 3))

    more = [Stage(Model(0), cost=1), Stage(three, cost=2)]
    with pytest.raises(ShapeError, match=r"Model has \(2,\), three \(3,\)"):
        try_all(more, X, TRUTH, loss=default_loss, costs=None)


def test_rows_and_outcomes_must_agree():
    with pytest.raises(ShapeError, match="Got 30 and 29"):
        try_all(stages(2), X, TRUTH[1:], loss=default_loss, costs=None)
