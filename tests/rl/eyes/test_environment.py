"""The world through Gymnasium: its checks, its seeds, one against many."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import caveat.rl
from caveat.errors import CaveatError, InputTypeError, ParameterError
from caveat.rl import EyesEnv, EyesVectorEnv


def test_gymnasium_has_no_complaint():
    env = gymnasium.make("caveat/Eyes-v0", render_mode="rgb_array")
    check_env(env.unwrapped)
    assert isinstance(env.unwrapped, caveat.rl.EyesEnv)


def test_vectorised_worlds_are_the_single_ones():
    many = gymnasium.make_vec("caveat/Eyes-v0", num_envs=3)
    assert isinstance(many, EyesVectorEnv)
    single = gymnasium.make("caveat/Eyes-v0")
    together, _ = many.reset(seed=5)
    one, _ = single.reset(seed=7)
    np.testing.assert_array_equal(together[2], one)
    many.action_space.seed(0)
    for _ in range(200):
        actions = many.action_space.sample()
        together, rewards, terminated, truncated, _ = many.step(actions)
        one, reward, *over, _ = single.step(actions[2])
        np.testing.assert_array_equal(together[2], one)
        assert rewards[2] == reward
        assert not any(over) and not terminated.any() and not truncated.any()


def test_seeds():
    env = EyesVectorEnv(2)
    first, _ = env.reset(seed=1)
    env.step(np.array([0, 0]))
    again, _ = env.reset(seed=1)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(env.reset(seed=[1, 2])[0], first)
    np.testing.assert_array_equal(env.worlds.items, _begun([1, 2]).items)
    env.reset()
    assert not np.array_equal(env.worlds.items, _begun([1, 2]).items)


def _begun(seeds):
    env = EyesVectorEnv(len(seeds))
    env.reset(seed=seeds)
    return env.worlds


def test_observations_lie_in_their_space():
    env = EyesVectorEnv(50)
    found, _ = env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(100):
        assert env.observation_space.contains(found)
        found, *_ = env.step(env.action_space.sample())


def test_undoubled_proximity_is_an_option():
    rewards = []
    for doubled in (True, False):
        env = gymnasium.make("caveat/Eyes-v0", doubled_proximity=doubled)
        env.reset(seed=0)
        rewards.append(env.step(1)[1])
    assert rewards[0] == pytest.approx(min(1.0, 2 * rewards[1]))


def test_wrong_use_is_told():
    with pytest.raises(ParameterError, match='None or "rgb_array"'):
        EyesEnv(render_mode="human")
    with pytest.raises(InputTypeError, match="num_envs must be a whole number"):
        EyesVectorEnv(2.5)
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset") as caught:
        EyesEnv().step(0)
    assert isinstance(caught.value, CaveatError)
