"""Masks over words, vectors and states."""

import math

import torch

from caveat.papers.sequence.networks import (
    VARIANTS,
    WIDTH,
    DroppedWords,
)
from caveat.sampling.mcdropout import MCDropout
from tests.papers.sequence.samples import a_part, a_reader


def test_variants_start_from_the_same_weights():
    words = a_part().words[0]
    first, *others = (a_reader(variant).eval() for variant in VARIANTS)
    for other in others:
        assert torch.equal(first(words), other(words))
    assert not torch.equal(a_reader("none", seed=1)(words), first(words))


def test_a_dropped_word_is_missing_wherever_it_stands():
    words = torch.tensor([[3, 4, 3, 5, 3, 4]]).repeat(4000, 1)
    layer = DroppedWords.like(torch.nn.Embedding(60, WIDTH), 0.25)
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        vectors = layer(words)
    clean = layer.eval()(words)
    ratio = (vectors / clean)[..., 0].detach()
    kept = ratio > 0.5
    assert torch.allclose(ratio[kept], torch.tensor(4 / 3))
    assert torch.equal(kept[:, 0], kept[:, 2]) and torch.equal(kept[:, 0], kept[:, 4])
    assert torch.equal(kept[:, 1], kept[:, 5])
    shares = kept[:, [0, 1, 3]].double().mean(0)
    error = math.sqrt(0.25 * 0.75 / 4000)
    assert (shares - 0.75).abs().max() < 4.5 * error
    both = (kept[:, 0] & kept[:, 1]).double().mean()  # words are dropped independently
    assert abs(float(both) - 0.75**2) < 4.5 * error


def test_a_draw_drops_the_same_words_in_all_texts():
    layer = DroppedWords.like(torch.nn.Embedding(60, WIDTH), 0.5)
    mc = MCDropout(layer, seed=0)
    words = torch.tensor([[3, 4, 5, 6, 7, 8], [8, 7, 6, 5, 4, 3], [9, 9, 9, 9, 9, 3]])
    kept = (mc.draws(words, n_draws=20) != 0).any(-1)
    assert torch.equal(kept[:, 0], kept[:, 1].flip(1))
    assert torch.equal(kept[:, 2, 5], kept[:, 0, 0])
    assert 0.3 < float(kept[:, 0].double().mean()) < 0.7


def test_ordinary_masks_are_new_at_each_step():
    layer = a_reader("ordinary").after_words
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        masks = layer(torch.ones(3, 8, WIDTH))
    assert not torch.equal(masks[:, 0], masks[:, 1])
