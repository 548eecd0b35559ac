"""Words as numbers: parts, vocabulary, batches."""

import pytest
import torch

from caveat.papers.sequence.texts import (
    FILLER,
    N_WORDS,
    UNKNOWN,
    load_task,
)
from tests.papers.sequence.samples import a_part


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("ratings", (3204, 801, 1001)), ("sentiment", (6920, 872, 1821))],
)
def test_parts_have_all_rows_and_few_lengths(name, sizes, real_data):
    task = load_task(name)
    assert tuple(map(len, (task.train, task.validation, task.test))) == sizes
    for part in (task.train, task.validation, task.test):
        lengths = [words.shape[1] for words in part.words]
        assert len(lengths) <= 6 and all(length % 8 == 0 for length in lengths)
        for words in part.words:
            assert 0 <= int(words.min()) and int(words.max()) < N_WORDS
            filled = words == FILLER
            assert bool((filled[:, :-1] | ~filled[:, 1:]).all())  # in front only
            assert int(filled.sum(1).max()) < 8


def test_vocabulary_is_that_of_the_training_rows(real_data):
    task = load_task("sentiment")
    found = torch.cat([w.flatten() for w in task.train.words]).unique()
    assert len(found) == N_WORDS  # every number occurs
    assert (torch.cat([w.flatten() for w in task.test.words]) == UNKNOWN).any()


def test_ratings_are_standardised_by_training_rows(real_data):
    task = load_task("ratings")
    train = torch.cat(task.train.targets)
    assert float(train.mean()) == pytest.approx(0.0, abs=1e-5)
    assert float(train.std(correction=0)) == pytest.approx(1.0, abs=1e-5)
    assert task.scale == pytest.approx(0.18, abs=0.01)


def test_batches_hold_every_row_once():
    part = a_part()
    batches = list(part.batches(7, torch.Generator().manual_seed(0)))
    assert sorted(len(words) for words, _ in batches) == [6, 6, 7, 7, 7, 7]
    for words, targets in batches:
        assert torch.equal(targets, words[:, :1].float() / 50)
    for length, own in zip((8, 16), part.words, strict=True):
        rows = torch.cat([w for w, _ in batches if w.shape[1] == length])
        assert sorted(rows.tolist()) == sorted(own.tolist())
    again = list(part.batches(7, torch.Generator().manual_seed(0)))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(batches, again, strict=True))
