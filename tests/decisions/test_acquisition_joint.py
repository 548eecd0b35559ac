"""Joint entropies against the enumeration of all configurations of labels."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from caveat.decisions.acquisition import joint_entropy
from caveat.decisions.acquisition.joint import Configurations
from caveat.errors import DrawsNotKeptError, InputTypeError, ShapeError
from caveat.predictive import (
    CategoricalAccumulator,
    CategoricalPredictive,
    GaussianPredictive,
)


def some_logits(n_draws, n_rows, n_classes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(n_draws, n_rows, n_classes, generator=generator)


def brute_force(logits):
    """-Σ p(y) log p(y), with p(y) = (1/T) Σ_t Π_i p_t(y_i), label by label."""
    probs = logits.double().softmax(-1).numpy()
    n_rows, n_classes = probs.shape[1:]
    total = 0.0
    for labels in product(range(n_classes), repeat=n_rows):
        chance = np.mean(
            [np.prod([draw[i, y] for i, y in enumerate(labels)]) for draw in probs]
        )
        total -= chance * np.log(chance)
    return total


@settings(max_examples=25, deadline=None)
@given(
    n_draws=st.integers(1, 6),
    n_rows=st.integers(1, 4),
    n_classes=st.integers(2, 3),
    seed=st.integers(0, 1000),
)
def test_exact_joint_entropy_is_the_enumeration(n_draws, n_rows, n_classes, seed):
    logits = some_logits(n_draws, n_rows, n_classes, seed)
    predictive = CategoricalPredictive.from_logits(logits)
    assert joint_entropy(predictive) == pytest.approx(brute_force(logits), abs=1e-10)


def test_conditional_entropy_is_a_difference_of_joint_entropies():
    logits = some_logits(5, 4, 3)
    probs = logits.double().softmax(-1)
    state = Configurations.empty(5)
    for row in (0, 1):
        state = state.grow(probs[:, row], 100, 0.5)
    found = state.conditional_entropy(probs[:, 2:])
    for place, row in enumerate((2, 3)):
        more, less = brute_force(logits[:, [0, 1, row]]), brute_force(logits[:, :2])
        assert float(found[place]) == pytest.approx(more - less, abs=1e-10)


def test_a_sample_of_configurations_is_unbiased():
    """Mean of estimates with 12 of 81 configurations, within its standard error."""
    logits = some_logits(6, 5, 3, seed=4)
    predictive = CategoricalPredictive.from_logits(logits)
    found = np.array(
        [joint_entropy(predictive, max_configurations=12, seed=s) for s in range(300)]
    )
    error = found.std() / np.sqrt(len(found))
    assert error > 0
    assert abs(found.mean() - brute_force(logits)) < 5 * error
    assert found.std() < 0.1 * brute_force(logits)


def test_labels_are_not_independent_when_masks_are_shared():
    logits = some_logits(6, 1, 3).expand(-1, 3, -1)  # three times the same row
    predictive = CategoricalPredictive.from_logits(logits.contiguous())
    apart = float(predictive.entropy.double().sum())
    assert joint_entropy(predictive) < apart - 0.1


def test_impossible_labels_are_left_out():
    logits = some_logits(4, 2, 3)
    logits[..., 2] = -torch.inf
    found = joint_entropy(CategoricalPredictive.from_logits(logits))
    assert found == pytest.approx(brute_force(logits[..., :2]), abs=1e-10)


def test_what_cannot_be_joined_is_refused():
    accumulator = CategoricalAccumulator(0, False)
    accumulator.add(some_logits(4, 2, 3))
    with pytest.raises(DrawsNotKeptError, match="keep_draws=True"):
        joint_entropy(accumulator.result())
    with pytest.raises(ShapeError, match="one label per row"):
        joint_entropy(CategoricalPredictive.from_logits(torch.zeros(2, 3, 4, 5)))
    regression = GaussianPredictive.from_draws(torch.zeros(2, 3), precision=1.0)
    with pytest.raises(InputTypeError, match=r"Got GaussianPredictive.*take Diverse"):
        joint_entropy(regression)
