"""Errors caught and AUROC against plain restatements."""

from itertools import permutations

import numpy as np
import pytest
import torch

from caveat.papers.mnist.scores import auroc, share_caught


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
def test_ties_are_broken_as_on_average_over_all_orders(share):
    doubt = torch.tensor([0.3, 0.9, 0.3, 0.3, 0.1])
    wrong = torch.tensor([True, False, False, True, True])
    caught = []
    for order in permutations(range(5)):
        ranked = sorted(order, key=lambda k: -doubt[k].item())
        caught.append(sum(wrong[k].item() for k in ranked[: round(5 * share)]) / 3)
    assert share_caught(doubt, wrong, share) == pytest.approx(np.mean(caught))


def test_auroc_is_a_share_of_pairs():
    known, strange = torch.tensor([0.1, 0.5, 0.2]), torch.tensor([0.5, 0.9])
    pairs = [(s > k).item() + 0.5 * (s == k).item() for s in strange for k in known]
    assert auroc(known, strange) == pytest.approx(np.mean(pairs))
