"""Small texts, networks and records."""

import torch

from caveat.papers.sequence.networks import (
    make_reader,
)
from caveat.papers.sequence.runs import ReaderEffort, ReaderRecord
from caveat.papers.sequence.texts import (
    Texts,
)


def a_part(n_rows=20):
    words = tuple(
        torch.arange(n_rows * length).reshape(n_rows, length) % 50 + 2
        for length in (8, 16)
    )
    targets = tuple(w[:, :1].float() / 50 for w in words)
    return Texts(words, targets)


def a_reader(variant, rate=0.5, seed=0):
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return make_reader(variant, rate, (60, 2))


TINY = ReaderEffort(epochs=2, n_draws=2, n_test_draws=3, most_rows=64)


def a_record(variant, rate, seed, epoch, value, part="validation", task="ratings"):
    scores = (0.5 - value, value, 0.5 - value, value)
    head = (task, variant, rate, seed, part, epoch, 10, 1, 1.0 / epoch, 30.0)
    return ReaderRecord(*head, *scores, 0.1)


def some_records(variant, rate, values, task="ratings"):
    """``values`` are log-likelihoods (seeds, epochs)."""
    for seed, own in enumerate(values):
        for epoch, value in enumerate(own, start=1):
            yield a_record(variant, rate, seed, epoch, value, task=task)
        for part, value in (("test", own[-1]), ("test_stopped", max(own))):
            yield a_record(variant, rate, seed, len(own), value, part, task)
