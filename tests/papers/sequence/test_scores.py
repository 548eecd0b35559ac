"""Scores against restated formulas."""

import math

import pytest
import torch

from caveat.papers.sequence.scores import (
    best_precision,
    mc_draws,
    point_draws,
    score,
)
from caveat.papers.sequence.texts import (
    Texts,
    TextTask,
)
from caveat.sampling.mcdropout import MCDropout
from tests.papers.sequence.samples import a_part, a_reader


def a_task(n_outputs=1):
    parts = [a_part() for _ in range(3)]
    if n_outputs > 1:
        parts = [
            Texts(p.words, tuple((t[:, 0] > 0.5).long() for t in p.targets))
            for p in parts
        ]
    return TextTask(*parts, n_outputs=n_outputs, scale=0.2, shift=0.6)


def test_draws_follow_the_weights():
    reader, part = a_reader("sequence"), a_part()
    mc = MCDropout(reader, seed=0)
    before = mc_draws(mc, part, 3)
    assert before.shape == (3, 40, 2)
    with torch.no_grad():
        reader.head.weight *= -1.0
        reader.lstm.weight_hh_l0 *= 2.0
    after = mc_draws(mc, part, 3)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, mc_draws(MCDropout(reader, seed=0), part, 3))


def test_point_draws_leave_the_mode():
    reader = a_reader("sequence").train()
    first, second = (point_draws(reader, a_part()) for _ in range(2))
    assert reader.training and first.shape == (1, 40, 2)
    assert torch.equal(first, second)


def test_score_of_ratings_is_equation_13():
    task, generator = a_task(), torch.Generator().manual_seed(0)
    draws = torch.randn(5, 40, 1, generator=generator)
    found = score(task, task.test, draws, 30.0)
    y = torch.cat(task.test.targets).double() * 0.2 + 0.6
    gaps = draws.double() * 0.2 + 0.6 - y
    density = (torch.exp(-15.0 * gaps**2) * math.sqrt(30.0 / (2 * math.pi))).mean(0)
    assert found.log_likelihood == pytest.approx(float(density.log().mean()), rel=1e-6)
    expected = float(gaps.mean(0).square().mean().sqrt())
    assert found.error == pytest.approx(expected, rel=1e-6)


def test_best_precision_of_one_draw_is_one_over_its_squared_error():
    task = a_task()
    draws = torch.randn(1, 40, 1, generator=torch.Generator().manual_seed(0))
    error = score(task, task.validation, draws, 1.0).error
    assert best_precision(task, draws) == pytest.approx(1 / error**2, rel=2e-3)
    assert best_precision(a_task(2), draws.expand(-1, -1, 2)) == 1.0


def test_score_of_labels_is_that_of_mean_probabilities():
    task, generator = a_task(2), torch.Generator().manual_seed(0)
    draws = torch.randn(5, 40, 2, generator=generator)
    found = score(task, task.test, draws, 1.0)
    y = torch.cat(task.test.targets)
    probs = draws.double().softmax(-1).mean(0)
    expected = probs.gather(1, y.unsqueeze(1)).log().mean()
    assert found.log_likelihood == pytest.approx(float(expected), rel=1e-5)
    assert found.error == pytest.approx(float((probs.argmax(1) != y).double().mean()))
