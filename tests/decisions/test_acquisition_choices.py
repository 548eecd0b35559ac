"""The plain choices, and what every choice checks."""

import numpy as np
import pytest
import torch

from caveat.decisions.acquisition import (
    Acquisition,
    BatchBALD,
    Diverse,
    RandomChoice,
    TopScore,
    as_acquisition,
    bald,
)
from caveat.errors import InputTypeError, ParameterError
from caveat.predictive import CategoricalPredictive

LOGITS = torch.randn(8, 30, 3, generator=torch.Generator().manual_seed(0))
PREDICTIVE = CategoricalPredictive.from_logits(LOGITS)
ALL = [TopScore(bald), RandomChoice(), BatchBALD(), Diverse(bald)]


@pytest.mark.parametrize("chooser", ALL, ids=lambda c: type(c).__name__)
def test_contract(chooser):
    assert isinstance(chooser, Acquisition)
    assert as_acquisition(chooser) is chooser
    rows = chooser.choose(PREDICTIVE, 30, seed=3)
    assert sorted(rows.tolist()) == list(range(30))
    np.testing.assert_array_equal(rows, chooser.choose(PREDICTIVE, 30, seed=3))
    with pytest.raises(ParameterError, match="at most the number of candidates, 30"):
        chooser.choose(PREDICTIVE, 31)
    with pytest.raises(ParameterError, match="n_rows must be at least 1"):
        chooser.choose(PREDICTIVE, 0)
    with pytest.raises(InputTypeError, match="Got ndarray"):
        chooser.choose(np.zeros(4), 2)


def test_top_scores_are_the_highest_and_ties_come_in_order():
    scores = torch.tensor([1.0, 3.0, 2.0, 3.0])
    rows = TopScore(lambda predictive: scores).choose(PREDICTIVE[:4], 3)
    assert rows.tolist() == [1, 3, 2]


def test_random_rows_are_equally_likely():
    few = PREDICTIVE[:4]
    found = [RandomChoice().choose(few, 1, seed=seed)[0] for seed in range(2000)]
    counts = np.bincount(found, minlength=4)
    assert np.abs(counts - 500).max() < 5 * np.sqrt(2000 * 3 / 16)


def test_scores_become_choices():
    assert as_acquisition("entropy") == TopScore("entropy")
    assert as_acquisition(bald) == TopScore(bald)
    with pytest.raises(InputTypeError, match="acquisition must have a method choose"):
        as_acquisition(3)
