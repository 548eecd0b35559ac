"""One Q-learner for any Gymnasium environment with a choice of actions."""

from typing import Any, Self

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from caveat import _validation as check
from caveat._random import Seed, as_seed
from caveat.errors import InputTypeError
from caveat.rl.qlearning.fleet import DQNFleet
from caveat.rl.qlearning.settings import QSettings


class DropoutQAgent:
    """An agent that acts by one draw from its posterior and learns from replay.

    Deep Q-learning of paper 001, section 5.4: a fleet of one, see :class:`DQNFleet`.

    Parameters
    ----------
    n_inputs, n_actions : int
        Sizes of an observation and of the choice.
    settings : QSettings, optional
        By default those of the paper, with Thompson sampling.
    seed : int, torch.Generator or None

    Examples
    --------
    >>> import gymnasium
    >>> from caveat.rl import DropoutQAgent, QSettings
    >>> env = gymnasium.make("CartPole-v1")
    >>> quick = QSettings(random_steps=100, learning_starts=64, discount=0.95)
    >>> agent = DropoutQAgent.for_env(env, settings=quick, seed=0)
    >>> rewards = agent.run(env, 300)
    >>> rewards.shape
    (300,)
    """

    def __init__(
        self,
        n_inputs: int,
        n_actions: int,
        *,
        settings: QSettings | None = None,
        seed: Seed = None,
    ) -> None:
        self.fleet = DQNFleet(
            check.positive_int("n_inputs", n_inputs),
            check.positive_int("n_actions", n_actions),
            settings=settings or QSettings.thompson(),
            seeds=[as_seed(seed)],
        )
        self._seed: int | None = as_seed(seed) if isinstance(seed, int) else None

    @classmethod
    def for_env(cls, env: gymnasium.Env[Any, Any], **options: Any) -> Self:
        """An agent of the sizes that an environment needs.

        Parameters
        ----------
        env : gymnasium.Env
            With observations that can be flattened, and a discrete choice of actions.
        **options
            ``settings`` and ``seed``.

        Returns
        -------
        DropoutQAgent
        """
        if not isinstance(env.action_space, spaces.Discrete):
            raise InputTypeError(
                f"The environment must offer a discrete choice of actions. "
                f"Got {env.action_space}."
            )
        n_inputs = spaces.flatdim(env.observation_space)
        return cls(n_inputs, int(env.action_space.n), **options)

    def act(self, observation: NDArray[Any]) -> int:
        """The next action: random at first, then the best of one sampled network."""
        return int(self.fleet.act(_row(observation))[0])

    def observe(
        self,
        observation: NDArray[Any],
        action: int,
        reward: float,
        next_observation: NDArray[Any],
        terminated: bool = False,
    ) -> None:
        """Remember a transition; nothing follows it if ``terminated``."""
        self.fleet.observe(
            _row(observation),
            np.array([action]),
            np.array([reward]),
            _row(next_observation),
            terminated,
        )

    def learn(self) -> None:
        """One step of gradient descent on replayed transitions."""
        self.fleet.learn()

    def run(self, env: gymnasium.Env[Any, Any], n_steps: int) -> NDArray[np.float64]:
        """Act, observe and learn for some steps, through as many episodes as it takes.

        Parameters
        ----------
        env : gymnasium.Env
            It is reset first, with the agent's seed if that was a number.
        n_steps : int
            Steps of the environment.

        Returns
        -------
        array, shape (n_steps,)
            Rewards.
        """
        rewards = np.empty(check.positive_int("n_steps", n_steps))
        observation = self._begin(env)
        for step in range(n_steps):
            action = self.act(observation)
            found, rewards[step], terminated, truncated, _ = env.step(
                _action(env, action)
            )
            following = _flat(env, found)
            self.observe(observation, action, rewards[step], following, terminated)
            self.learn()
            over = terminated or truncated
            observation = self._begin(env) if over else following
        return rewards

    def _begin(self, env: gymnasium.Env[Any, Any]) -> NDArray[Any]:
        seed, self._seed = self._seed, None
        return _flat(env, env.reset(seed=seed)[0])


def _row(observation: NDArray[Any]) -> NDArray[Any]:
    return np.reshape(observation, (1, -1))


def _flat(env: gymnasium.Env[Any, Any], observation: Any) -> NDArray[Any]:
    flat: Any = spaces.flatten(env.observation_space, observation)
    return np.asarray(flat)


def _action(env: gymnasium.Env[Any, Any], number: int) -> int:
    """The name of an action in its space, which may start elsewhere than at 0."""
    return number + int(env.action_space.start)  # type: ignore[attr-defined]
