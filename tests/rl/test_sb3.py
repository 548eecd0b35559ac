"""The policy for Stable-Baselines3: dropout on to act and in targets, in any mode."""

import numpy as np
import pytest
import torch
from stable_baselines3 import DQN

from caveat.errors import ParameterError
from caveat.rl import DropoutDQNPolicy
from caveat.rl.sb3 import DropoutQNetwork

NO_EPSILON = {"exploration_initial_eps": 0.0, "exploration_final_eps": 0.0}


def dqn(**changes):
    options = {"learning_starts": 20, "batch_size": 8, "buffer_size": 500, "seed": 0}
    options |= {"device": "cpu", **NO_EPSILON, **changes}
    return DQN(DropoutDQNPolicy, "CartPole-v1", **options)


@pytest.fixture
def model():
    return dqn(policy_kwargs={"drop_rate": 0.5, "net_arch": [16, 8]})


def passes(network, count=40):
    x = torch.tensor([[0.1, -0.2, 0.05, 0.3]])
    with torch.no_grad():
        return torch.stack([network(x) for _ in range(count)])


@pytest.mark.parametrize("mode", [True, False])
def test_every_pass_is_another_network(model, mode):
    for network in (model.q_net, model.q_net_target):
        assert isinstance(network, DropoutQNetwork)
        network.set_training_mode(mode)
        assert len(passes(network).unique(dim=0)) > 5


def test_target_and_network_share_weights_at_first(model):
    for a, b in zip(
        model.q_net.parameters(), model.q_net_target.parameters(), strict=True
    ):
        torch.testing.assert_close(a, b)


def test_deterministic_is_one_pass_without_dropout(model):
    x = np.array([0.1, -0.2, 0.05, 0.3], dtype="f")
    expected = int(model.q_net.q_net(torch.from_numpy(x)).argmax())
    for _ in range(10):
        assert int(model.predict(x, deterministic=True)[0]) == expected


def test_acting_is_the_best_action_of_one_sampled_network(model):
    """As often as single passes put each action first."""
    x = np.array([0.0, 0.0, 0.0, 0.0], dtype="f")
    with torch.no_grad():
        for bias in (p for n, p in model.q_net.named_parameters() if "bias" in n):
            bias.fill_(0.3)
        for weight in (p for n, p in model.q_net.named_parameters() if "weight" in n):
            weight.normal_()
    rows = torch.zeros(20_000, 4)
    share = float((model.q_net(rows).argmax(1) == 1).double().mean())
    assert 0.02 < share < 0.98
    drawn = np.array([int(model.predict(x)[0]) for _ in range(1_500)])
    error = np.sqrt(share * (1 - share) * (1 / 1_500 + 1 / 20_000))
    assert abs(drawn.mean() - share) < 5 * error


def test_dropped_units_are_those_behind_non_linearities(model):
    """With one hidden unit kept at a time the output is affine in the masks."""
    network = model.q_net
    with torch.no_grad():
        network.q_net[2].weight.zero_()
        network.q_net[2].bias.fill_(1.0)
        network.q_net[4].weight.fill_(1.0)
        network.q_net[4].bias.fill_(0.25)
    values = passes(network, 200)[:, 0, 0]
    kept = (values - 0.25) / 2.0  # 8 units of value 1, kept ones doubled
    torch.testing.assert_close(kept, kept.round())
    assert kept.min() >= 0 and kept.max() <= 8 and len(kept.unique()) > 3


def test_it_learns_and_survives_saving(tmp_path, model):
    before = [p.clone() for p in model.q_net.parameters()]
    model.learn(200)
    assert any(
        (a != b).any() for a, b in zip(before, model.q_net.parameters(), strict=True)
    )
    model.save(tmp_path / "model")
    loaded = DQN.load(tmp_path / "model", device="cpu")
    assert loaded.q_net.drop_rate == 0.5
    x = torch.zeros(1, 4)
    torch.testing.assert_close(loaded.q_net._run(x, 0.0), model.q_net._run(x, 0.0))
    model.policy.save(tmp_path / "policy")
    policy = DropoutDQNPolicy.load(tmp_path / "policy", device="cpu")
    assert policy.q_net.drop_rate == 0.5


def test_same_seed_same_rewards():
    weights = [list(dqn().learn(100).q_net.parameters()) for _ in range(2)]
    for a, b in zip(*weights, strict=True):
        torch.testing.assert_close(a, b, rtol=0.0, atol=0.0)


def test_default_rate_is_that_of_the_paper():
    assert dqn().q_net.drop_rate == 0.1


def test_a_rate_of_one_is_refused():
    with pytest.raises(ParameterError, match=r"must lie in \[0, 1\)"):
        dqn(policy_kwargs={"drop_rate": 1.0})
