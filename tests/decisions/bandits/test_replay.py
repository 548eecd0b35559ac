"""Networks that learn from all rounds so far."""

import numpy as np
import pytest
import torch

from caveat.decisions.bandits.replay import ReplayNetworks, ReplayTraining, TakenArm
from caveat.errors import ParameterError
from caveat.training.members import Architecture


def rounds(n=400, seed=0):
    """Arm 0 is worth 10 x, arm 1 its opposite."""
    rng = np.random.default_rng(seed)
    contexts, arms = rng.normal(size=(n, 1)), rng.integers(2, size=n)
    return contexts, arms, 10 * contexts[:, 0] * np.where(arms == 0, 1.0, -1.0)


def networks(count=1, **settings):
    training = ReplayTraining(hidden=(20,), n_steps=300, learning_rate=0.01)
    return ReplayNetworks(Architecture(1, (20,), 2), count, training, **settings)


def test_only_the_arm_taken_has_a_gradient():
    outputs = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    taken = torch.nn.functional.one_hot(torch.tensor([0, 2, 1, 1, 0]), 3).double()
    targets = torch.cat([taken * 7.0, taken], 1)
    loss = TakenArm()
    (expected,) = torch.autograd.grad(loss.loss(outputs, targets).sum(), outputs)
    torch.testing.assert_close(loss.gradient(outputs, targets), expected)
    assert bool((expected[taken == 0] == 0).all())
    assert loss.n_outputs(6) == 3


@pytest.mark.parametrize("drop_rate", [0.0, 0.1])
def test_rewards_are_learned_in_their_units(drop_rate):
    found = networks(3, seed=0)
    assert found.add(*rounds())
    found.train(drop_rate)
    outputs = found.outputs(np.array([[1.0], [-0.5]]))
    assert outputs.shape == (3, 2, 2)
    expected = torch.tensor([[10.0, -10.0], [-5.0, 5.0]])
    assert float((outputs - expected).abs().max()) < 2.5


def test_the_module_is_the_network():
    found = networks(2, seed=1)
    module = found.module(1, 0.4)
    contexts, arms, rewards = rounds(50)
    for _ in range(2):  # also after training
        x = torch.from_numpy(contexts).float()
        outputs = found.scaled(module(x))
        np.testing.assert_allclose(outputs, found.outputs(contexts)[1], atol=1e-4)
        found.add(contexts, arms, rewards)
        found.train(0.4)


def test_it_is_time_after_enough_rounds():
    found = networks(seed=0)
    contexts, arms, rewards = rounds(12)
    assert not found.add(contexts[:9], arms[:9], rewards[:9])
    assert found.add(contexts[9:], arms[9:], rewards[9:])
    assert found.n_rows == 12


def test_networks_see_their_share_only():
    """With the share of all but none, a network keeps its first weights but decay."""
    found = networks(2, row_share=1e-9, seed=0)
    before = found.outputs(np.ones((1, 1)))
    found.add(*rounds())
    scale = float(np.sqrt(np.mean(np.square(rounds()[2]))))
    found.train(0.0)
    after = found.outputs(np.ones((1, 1))) / scale
    seen = networks(2, seed=0)
    seen.add(*rounds())
    seen.train(0.0)
    moved = (seen.outputs(np.ones((1, 1))) / scale - before).abs().max()
    assert float((after - before).abs().max()) < 0.5 * float(moved)


def test_same_seed_same_networks():
    outputs = []
    for seed in (0, 0, 1):
        found = networks(2, row_share=0.5, seed=seed)
        found.add(*rounds(50))
        found.train(0.2)
        outputs.append(found.outputs(np.ones((1, 1))))
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])


def test_decay_is_that_of_the_prior():
    """E13 and E14: lambda = l²/(2 p tau N) with inverted masks, over p for biases."""
    training = ReplayTraining(lengthscale=2.0, precision=5.0)
    weights, bias = training.penalties([0.0, 0.5], 100)
    np.testing.assert_allclose(weights, [4 / 1000, 4 / 500])
    assert float(bias) == pytest.approx(4 / 1000)


def test_bad_input():
    with pytest.raises(ParameterError, match="n_steps must be at least 1"):
        ReplayTraining(n_steps=0)
    with pytest.raises(ParameterError, match="learning_rate must be finite and above"):
        ReplayTraining(learning_rate=0.0)
