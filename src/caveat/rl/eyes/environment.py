"""The world as Gymnasium environments: one, or many at once."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from caveat import _validation as check
from caveat.errors import CaveatError, ParameterError
from caveat.rl.eyes.rendering import picture
from caveat.rl.eyes.worlds import N_ACTIONS, N_EYES, Worlds

Inputs = NDArray[np.float32]

_METADATA: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}
_VECTOR_METADATA = {**_METADATA, "autoreset_mode": AutoresetMode.DISABLED}


class NotBegunError(CaveatError, gymnasium.error.ResetNeeded):
    """A step was asked of a world that has not been reset yet."""


class EyesEnv(gymnasium.Env[Inputs, np.int64]):
    """An agent with nine eyes among walls, food and poison (paper 001, fig. 5).

    An observation is 27 numbers in [0, 1]: for each eye the distance to a wall, to food
    and to poison, 1 for all that it does not see. The five actions go straight, turn
    slightly to either side, or sharply. Rewards are for keeping off the walls, going
    straight (together at most 1.1) and eating: +5 for food, -6 for poison. The episode
    never ends.

    Parameters
    ----------
    doubled_proximity : bool
        Whether the reward for keeping off the walls is min(1, 2 proximity), as in the
        original, or the proximity itself.
    render_mode : {"rgb_array"}, optional
        What :meth:`render` gives.

    Examples
    --------
    >>> import gymnasium, caveat.rl
    >>> env = gymnasium.make("caveat/Eyes-v0")
    >>> observation, info = env.reset(seed=0)
    >>> observation.shape, int(env.action_space.n)
    ((27,), 5)
    """

    metadata = _METADATA

    def __init__(
        self, *, doubled_proximity: bool = True, render_mode: str | None = None
    ) -> None:
        self.render_mode = _render_mode(render_mode)
        self.observation_space = _observation_space()
        self.action_space = spaces.Discrete(N_ACTIONS)
        self._doubled = doubled_proximity
        self._worlds: Worlds | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Inputs, dict[str, Any]]:
        """Begin anew in a world of 30 items."""
        super().reset(seed=seed)
        self._worlds = Worlds([self.np_random], doubled=self._doubled)
        return self._worlds.readings.inputs()[0], {}

    def step(self, action: Any) -> tuple[Inputs, float, bool, bool, dict[str, Any]]:
        """One tick of the world."""
        worlds = _begun(self._worlds)
        reward = worlds.step(np.array([action], dtype=np.int64))
        return worlds.readings.inputs()[0], float(reward[0]), False, False, {}

    def render(self) -> Any:
        """The picture of the world now, (500, 700, 3), if ``render_mode`` says so."""
        return picture(_begun(self._worlds)) if self.render_mode else None


class EyesVectorEnv(VectorEnv[Inputs, NDArray[np.int64], Any]):
    """Many worlds that tick together; see :class:`EyesEnv`.

    World k under the seed s is the world of ``EyesEnv`` under the seed s + k.

    Parameters
    ----------
    num_envs : int
        How many.
    doubled_proximity : bool
        As for ``EyesEnv``.
    render_mode : {"rgb_array"}, optional
        What :meth:`render` gives, a picture of each world.

    Examples
    --------
    >>> import gymnasium, caveat.rl
    >>> worlds = gymnasium.make_vec("caveat/Eyes-v0", num_envs=100)
    >>> observations, _ = worlds.reset(seed=0)
    >>> observations, rewards, *_ = worlds.step(worlds.action_space.sample())
    >>> observations.shape, rewards.shape
    ((100, 27), (100,))
    """

    metadata = _VECTOR_METADATA

    def __init__(
        self,
        num_envs: int = 1,
        *,
        doubled_proximity: bool = True,
        render_mode: str | None = None,
    ) -> None:
        self.num_envs = check.positive_int("num_envs", num_envs)
        self.render_mode = _render_mode(render_mode)
        self.single_observation_space = _observation_space()
        self.single_action_space = spaces.Discrete(N_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._doubled = doubled_proximity
        self._worlds: Worlds | None = None

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Inputs, dict[str, Any]]:
        """Begin all worlds anew; a number seeds the first, and the next follow it."""
        if seed is not None or self._worlds is None:
            generators = [np_random(s)[0] for s in self._seeds(seed)]
        else:
            generators = self._worlds.generators
        self._worlds = Worlds(generators, doubled=self._doubled)
        return self._worlds.readings.inputs(), {}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[
        Inputs,
        NDArray[np.float64],
        NDArray[np.bool_],
        NDArray[np.bool_],
        dict[str, Any],
    ]:
        """One tick of all worlds."""
        worlds = _begun(self._worlds)
        rewards = worlds.step(np.asarray(actions, dtype=np.int64))
        over = np.zeros((2, self.num_envs), dtype=np.bool_)
        return worlds.readings.inputs(), rewards, over[0], over[1], {}

    def render(self) -> tuple[Any, ...] | None:
        """A picture of each world now, if ``render_mode`` says so."""
        if not self.render_mode:
            return None
        worlds = _begun(self._worlds)
        return tuple(picture(worlds, k) for k in range(self.num_envs))

    @property
    def worlds(self) -> Worlds:
        """The state of the worlds."""
        return _begun(self._worlds)

    def _seeds(self, seed: int | list[int | None] | None) -> list[int | None]:
        if isinstance(seed, list):
            return seed
        count = range(self.num_envs)
        return [None for _ in count] if seed is None else [seed + k for k in count]


def _observation_space() -> spaces.Space[Inputs]:
    box: Any = spaces.Box(0.0, 1.0, (3 * N_EYES,), np.float32)
    found: spaces.Space[Inputs] = box
    return found


def _render_mode(value: str | None) -> str | None:
    if value not in (None, *_METADATA["render_modes"]):
        raise ParameterError(f'render_mode must be None or "rgb_array". Got {value!r}.')
    return value


def _begun(worlds: Worlds | None) -> Worlds:
    if worlds is None:
        raise NotBegunError("Call reset() before step() or render().")
    return worlds
