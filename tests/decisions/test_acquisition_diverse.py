"""Spread-out batches: distances, chances, duplicates."""

import numpy as np
import pytest
import torch

from caveat.decisions.acquisition import Diverse, bald, disagreement
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.predictive import CategoricalPredictive, GaussianPredictive
from tests.decisions.test_acquisition_joint import some_logits


def regression(draws):
    return GaussianPredictive.from_draws(torch.tensor(draws), precision=1.0)


def test_length_is_the_variance_of_the_draws():
    logits = some_logits(7, 5, 3)
    predictive = CategoricalPredictive.from_logits(logits)
    probs = logits.double().softmax(-1).numpy()
    length = np.square(disagreement(predictive)).sum(1)
    np.testing.assert_allclose(length, probs.var(0).sum(-1), rtol=1e-10)
    draws = torch.randn(6, 4, 2, generator=torch.Generator().manual_seed(0))
    points = disagreement(GaussianPredictive.from_draws(draws, precision=1.0))
    naive = draws.double().numpy() - draws.double().numpy().mean(0)
    apart = np.square(naive[:, 0] - naive[:, 3]).sum() / 6
    np.testing.assert_allclose(np.square(points[0] - points[3]).sum(), apart)


def test_chances_are_score_times_squared_distance():
    """Points 0, 1 and 3 on a line; after row 0 the chances are 1·1 and 2·9 of 19."""
    predictive = regression([[0.0, 0.0, 0.0]])
    chooser = Diverse(
        lambda p: torch.tensor([1e6, 1.0, 2.0]), lambda p: np.array([[0], [1], [3]])
    )
    found = [chooser.choose(predictive, 2, seed=seed) for seed in range(1000)]
    first = np.array([rows[0] for rows in found])
    second = np.array([rows[1] for rows in found if rows[0] == 0])
    assert (first == 0).mean() > 0.99
    share = (second == 2).mean()
    assert abs(share - 18 / 19) < 5 * np.sqrt(18 / 19 / 19 / len(second))


def test_duplicates_have_no_chance_until_nothing_else_is_left():
    predictive = regression([[0.0, 0.0, 1.0, 1.0], [2.0, 2.0, -1.0, -1.0]])
    for seed in range(20):
        rows = Diverse("epistemic_std").choose(predictive, 4, seed=seed).tolist()
        assert {row // 2 for row in rows[:2]} == {0, 1}
        assert sorted(rows) == [0, 1, 2, 3]


def test_bad_input():
    predictive = CategoricalPredictive.from_logits(some_logits(3, 4, 2))
    with pytest.raises(ParameterError, match="finite and not negative"):
        Diverse(lambda p: -torch.ones(4)).choose(predictive, 2)
    with pytest.raises(ShapeError, match=r"with 4 rows. Got \(3, 2\)"):
        Diverse(bald, lambda p: np.zeros((3, 2))).choose(predictive, 2)
    with pytest.raises(InputTypeError, match="needs a caveat Predictive"):
        disagreement(object())
