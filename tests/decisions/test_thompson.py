"""Thompson sampling against all masks of a tiny network."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

from caveat import MCDropout
from caveat.decisions.thompson import (
    FunctionSampler,
    thompson,
    thompson_arms,
    thompson_batch,
)
from caveat.errors import InputTypeError, ParameterError, ShapeError
from tests.statistics import assert_mean_is

KEEP = 0.7
W1 = torch.tensor([[0.5, -1.0], [1.0, 0.5], [-0.5, 1.5]])
W2 = torch.tensor([[1.0, -1.2, 0.9], [0.2, 0.4, -0.3], [-0.6, 0.5, 0.4]])


def net(outputs: int) -> nn.Sequential:
    """Two inputs, three hidden units that are dropped, one or three outputs."""
    model = nn.Sequential(
        nn.Linear(2, 3, bias=False),
        nn.ReLU(),
        nn.Dropout(1 - KEEP),
        nn.Linear(3, outputs, bias=False),
    )
    with torch.no_grad():
        model[0].weight.copy_(W1)
        model[3].weight.copy_(W2[:outputs])
    return model


def exact_probabilities(values_of) -> torch.Tensor:
    """Of being the best one, over all eight masks; values_of(mask) is (choices,)."""
    first = values_of(torch.ones(3))
    found = torch.zeros(len(first), dtype=torch.float64)
    for mask in product((0.0, 1.0), repeat=3):
        weight = np.prod([KEEP if kept else 1 - KEEP for kept in mask])
        found[values_of(torch.tensor(mask) / KEEP).argmax()] += weight
    return found


CANDIDATES = torch.tensor([[1.0, -0.5], [-0.5, 1.0], [0.8, 0.6]])


def assert_frequencies(chosen: torch.Tensor, expected: torch.Tensor) -> None:
    assert ((expected > 0.05) & (expected < 0.95)).sum() >= 2  # else it shows nothing
    assert float(expected.sum()) == pytest.approx(1.0)
    hits = nn.functional.one_hot(chosen, len(expected)).double()
    assert_mean_is(hits, expected)


def test_candidates_are_chosen_as_often_as_they_are_best():
    """E146, by enumeration."""
    units = torch.relu(CANDIDATES @ W1.T)
    expected = exact_probabilities(lambda mask: units @ (mask * W2[0]))
    chosen = thompson(MCDropout(net(1), seed=3), CANDIDATES, n_draws=600)
    assert_frequencies(chosen, expected)


def test_arms_are_chosen_as_often_as_they_are_best():
    context = torch.tensor([0.3, 0.9])
    units = torch.relu(W1 @ context)
    expected = exact_probabilities(lambda mask: W2 @ (mask * units))
    contexts = context.expand(600, 2)
    assert_frequencies(thompson_arms(MCDropout(net(3), seed=5), contexts), expected)


def test_one_mask_serves_all_candidates():
    """Half an action has half the value under any mask: never the better one."""
    model = net(1)
    with torch.no_grad():
        model[3].weight.abs_()
    both = torch.stack([0.5 * CANDIDATES[2], CANDIDATES[2]])
    chosen = thompson(MCDropout(model, seed=0), both, n_draws=100)
    with torch.no_grad():
        sampler = MCDropout(model, seed=0, stratified=False)
        values = [sampler.function(t)(both) for t in range(100)]
    alive = torch.tensor([float(v.abs().max()) > 0 for v in values])
    assert alive.any()
    assert bool((chosen[alive] == 1).all())


def test_numbers_of_draws():
    sampler = MCDropout(net(1), seed=1)
    together = thompson(sampler, CANDIDATES, n_draws=6)
    parts = [thompson(sampler, CANDIDATES, n_draws=3, first_draw=k) for k in (0, 3)]
    assert torch.equal(together, torch.cat(parts))
    assert thompson(sampler, CANDIDATES).shape == (1,)


def test_arms_follow_the_functions():
    sampler = MCDropout(net(3), seed=2)
    contexts = torch.randn(7, 2, generator=torch.Generator().manual_seed(0))
    expected = [sampler.function(4 + i)(contexts)[i].argmax() for i in range(7)]
    assert torch.equal(
        thompson_arms(sampler, contexts, first_draw=4), torch.stack(expected)
    )
    assert thompson_arms(sampler, contexts[:0]).shape == (0,)


def test_a_batch_has_no_candidate_twice():
    sampler = MCDropout(net(1), seed=1)
    chosen = thompson_batch(sampler, CANDIDATES, n_suggestions=3)
    assert sorted(chosen.tolist()) == [0, 1, 2]
    first = thompson(sampler, CANDIDATES)
    assert chosen[0] == first[0]
    with pytest.raises(ParameterError, match=r"number of candidates, 3\. Got 4"):
        thompson_batch(sampler, CANDIDATES, n_suggestions=4)


class Fixed:
    """A sampler with a single function."""

    def __init__(self, function):
        self._function = function

    def function(self, number):
        return self._function


def test_any_function_will_do():
    points = np.linspace(-2, 2, 401)[:, None]
    sampler = Fixed(lambda x: -np.square(x[:, 0] - 0.7))
    assert isinstance(sampler, FunctionSampler)
    assert points[thompson(sampler, points)[0], 0] == pytest.approx(0.7)


def test_utility_makes_one_value_of_outputs():
    points = torch.eye(3)
    sampler = Fixed(lambda x: torch.stack([x[:, 0], -5 * x[:, 1]], 1))
    worst = thompson(sampler, points, utility=lambda out: -out.sum(1))
    assert worst.tolist() == [1]


def test_the_model_is_left_alone():
    model = net(1).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    thompson(MCDropout(model, seed=0), CANDIDATES, n_draws=3)
    assert model.training
    assert all(torch.equal(before[n], v) for n, v in model.state_dict().items())


def test_bad_input():
    sampler = MCDropout(net(3), seed=0)
    with pytest.raises(InputTypeError, match="Wrap a dropout network as MCDropout"):
        thompson(net(3), CANDIDATES)
    with pytest.raises(ShapeError, match=r"one value per candidate.*Got \(3, 3\)"):
        thompson(sampler, CANDIDATES)
    with pytest.raises(ShapeError, match="if candidates are rows, use thompson"):
        thompson_arms(Fixed(lambda x: x[:, 0]), CANDIDATES)
    with pytest.raises(ShapeError, match="at least one row"):
        thompson(Fixed(lambda x: x[:, 0]), CANDIDATES[:0])
    with pytest.raises(ParameterError, match="must be finite"):
        thompson(Fixed(lambda x: x[:, 0] * torch.nan), CANDIDATES)
    with pytest.raises(ParameterError, match="at least 1"):
        thompson(sampler, CANDIDATES, n_draws=0)
