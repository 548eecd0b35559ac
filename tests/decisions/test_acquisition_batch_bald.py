"""BatchBALD against a greedy search with enumerated joint entropies."""

import numpy as np
import pytest
import torch

from caveat.decisions.acquisition import BatchBALD, TopScore, bald
from caveat.decisions.acquisition.joint import Configurations
from caveat.errors import DrawsNotKeptError, ParameterError
from caveat.predictive import CategoricalAccumulator, CategoricalPredictive
from tests.decisions.test_acquisition_joint import brute_force, some_logits


def naive_greedy(logits, n_rows):
    """Each row is tried at each step: H(y_batch) - Σ_i (1/T) Σ_t H(p_t(y_i))."""
    probs = logits.double().softmax(-1)
    expected = torch.special.entr(probs).sum(-1).mean(0).numpy()
    chosen = []
    for _ in range(n_rows):
        left = [row for row in range(logits.shape[1]) if row not in chosen]
        tried = [[*chosen, row] for row in left]
        gains = [brute_force(logits[:, rows]) - expected[rows].sum() for rows in tried]
        chosen.append(left[int(np.argmax(gains))])
    return chosen


@pytest.mark.parametrize("seed", range(4))
def test_choice_is_that_of_the_naive_greedy_search(seed):
    logits = some_logits(5, 12, 3, seed)
    predictive = CategoricalPredictive.from_logits(logits)
    assert BatchBALD().choose(predictive, 4).tolist() == naive_greedy(logits, 4)


def test_skipping_candidates_changes_nothing():
    """More candidates than are judged at a time, against judging all of them."""
    logits = some_logits(20, 150, 3, seed=7) * torch.linspace(0.1, 1.5, 150)[:, None]
    probs = logits.double().softmax(-1)
    expected = torch.special.entr(probs).sum(-1).mean(0)
    state, wanted = Configurations.empty(20), []
    for _ in range(5):
        gain = state.conditional_entropy(probs) - expected
        gain[wanted] = -torch.inf
        wanted.append(int(gain.argmax()))
        state = state.grow(probs[:, wanted[-1]], 1000, 0.5)
    predictive = CategoricalPredictive.from_logits(logits)
    assert BatchBALD().choose(predictive, 5).tolist() == wanted


def test_near_duplicates_do_not_come_together():
    """Ten rows, each nearly the same five times: BALD takes one kind, BatchBALD ten."""
    generator = torch.Generator().manual_seed(0)
    kinds = 3 * torch.randn(40, 10, 2, generator=generator)
    copies = kinds.repeat_interleave(5, 1)
    logits = copies + 0.01 * torch.randn(copies.shape, generator=generator)
    predictive = CategoricalPredictive.from_logits(logits)
    batch = BatchBALD().choose(predictive, 5) // 5
    single = TopScore(bald).choose(predictive, 5) // 5
    assert len(set(batch.tolist())) == 5
    assert len(set(single.tolist())) == 1


def test_a_sample_tells_nearly_as_much_as_the_exact_choice():
    logits = some_logits(10, 20, 3, seed=5)
    probs = logits.double().softmax(-1)
    expected = torch.special.entr(probs).sum(-1).mean(0).numpy()
    predictive = CategoricalPredictive.from_logits(logits)

    def told(rows):
        return brute_force(logits[:, rows]) - expected[rows].sum()

    exact = told(BatchBALD().choose(predictive, 5))
    sampled = told(BatchBALD(max_configurations=20).choose(predictive, 5, seed=1))
    assert sampled > 0.97 * exact


def test_bad_input():
    with pytest.raises(ParameterError, match="max_configurations must be at least 1"):
        BatchBALD(max_configurations=0)
    accumulator = CategoricalAccumulator(0, False)
    accumulator.add(some_logits(4, 5, 3))
    with pytest.raises(DrawsNotKeptError, match="keep_draws=True"):
        BatchBALD().choose(accumulator.result(), 2)
