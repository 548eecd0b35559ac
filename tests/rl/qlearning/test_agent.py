"""One agent on environments of Gymnasium."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from caveat.errors import InputTypeError
from caveat.rl import DropoutQAgent, QSettings

QUICK = QSettings(random_steps=50, learning_starts=30)


class Corridor(gymnasium.Env):
    """Going right pays, left does not; actions are called 5 and 6; ten steps."""

    observation_space = spaces.Dict({"place": spaces.Box(-1.0, 1.0, (1, 1))})
    action_space = spaces.Discrete(2, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds = [*getattr(self, "seeds", []), seed]
        self.time = 0
        return self._seen(), {}

    def step(self, action):
        assert action in (5, 6)
        self.time += 1
        return self._seen(), float(action == 6), self.time == 10, False, {}

    def _seen(self):
        return {"place": np.full((1, 1), self.time / 10, dtype="f")}


def test_it_learns_what_pays():
    env = Corridor()
    settings = QSettings(
        hidden=(20,), drop_rates=(0.0, 0.1), random_steps=100, learning_rate=0.05
    )
    agent = DropoutQAgent.for_env(
        env, settings=QSettings(**{**vars(settings), "learning_starts": 50}), seed=0
    )
    rewards = agent.run(env, 600)
    assert rewards[:100].mean() < 0.7
    assert rewards[-100:].mean() > 0.9
    assert env.seeds[0] == 0 and set(env.seeds[1:]) == {None}


def test_same_seed_same_rewards():
    def run(seed):
        env = gymnasium.make("CartPole-v1")
        return DropoutQAgent.for_env(env, settings=QUICK, seed=seed).run(env, 150)

    np.testing.assert_array_equal(run(3), run(3))


def test_own_loop():
    agent = DropoutQAgent(27, 5, settings=QUICK, seed=1)
    env = gymnasium.make("caveat/Eyes-v0")
    x, _ = env.reset(seed=0)
    for _ in range(80):
        action = agent.act(x)
        following, reward, terminated, _, _ = env.step(action)
        agent.observe(x, action, reward, following, terminated)
        agent.learn()
        x = following
    assert agent.fleet.age == 80


def test_continuous_actions_are_refused():
    with pytest.raises(InputTypeError, match="discrete choice of actions"):
        DropoutQAgent.for_env(gymnasium.make("Pendulum-v1"))
