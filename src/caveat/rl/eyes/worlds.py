"""The world of paper 001, section 5.4: an agent with nine eyes, food and poison.

It is the one of Karpathy's ConvNetJS demo, which the paper used. Many worlds live side
by side in arrays whose first axis is the world. Each world draws from its own
generator, a fixed number of values at fixed ticks, so it does the same alone and among
others.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caveat.rl.eyes.geometry import HEIGHT, WIDTH, Array, clear_way
from caveat.rl.states import restore, states_of

N_EYES = 9
N_ITEMS = 30
RANGE = 85.0
RADIUS = 10.0  # of the agent and of the items
OFFSETS: Array = np.linspace(-0.75, 1.25, N_EYES)  # not symmetric, as in the original
WHEELS: Array = np.array([[1.0, 1.0], [0.8, 1.0], [1.0, 0.8], [0.5, 0.0], [0.0, 0.5]])
N_ACTIONS = len(WHEELS)
WALL, FOOD, POISON, NOTHING = 0, 1, 2, 3
DIGESTION: Array = np.array([0.0, 5.0, -6.0])  # of nothing, food, poison

_HALF_AXLE = RADIUS / 2.0
_START = (50.0, 50.0)
_NOWHERE = np.nan  # of items that are not there: no comparison holds
_OLD = 5_000
_MARGIN = 20.0
_STATE = ("position", "heading", "items", "kinds", "born")


class Readings(NamedTuple):
    """What the eyes of each world see.

    Attributes
    ----------
    distance : array, shape (worlds, eyes)
        To the nearest hit, in units of the range; 1 if there is none.
    kind : array, shape (worlds, eyes)
        WALL, FOOD, POISON or NOTHING.
    """

    distance: Array
    kind: NDArray[np.int64]

    def inputs(self) -> NDArray[np.float32]:
        """27 numbers for each world: wall, food, poison of each eye (ledger E132)."""
        seen = self.kind[..., None] == np.arange(3)
        # E132
        values = np.where(seen, self.distance[..., None], 1.0)
        return values.reshape(len(values), -1).astype(np.float32)


class Worlds:
    """Worlds that tick together.

    Parameters
    ----------
    generators : sequence of numpy Generator
        One for each world.
    doubled : bool
        Whether the reward for keeping off the walls is min(1, 2 proximity), as in the
        original demo, or the proximity itself.

    Examples
    --------
    >>> import numpy as np
    >>> from caveat.rl.eyes.worlds import Worlds
    >>> worlds = Worlds([np.random.default_rng(k) for k in range(3)])
    >>> worlds.step(np.array([0, 1, 2])).shape
    (3,)
    """

    def __init__(
        self, generators: Sequence[np.random.Generator], *, doubled: bool = True
    ) -> None:
        self.generators = list(generators)
        self._doubled = doubled
        n_worlds = len(self.generators)
        self._rows = np.arange(n_worlds)
        self.clock = 0
        self.position: Array = np.tile(_START, (n_worlds, 1))
        self.heading: Array = np.zeros(n_worlds)
        self.born = np.zeros((n_worlds, N_ITEMS), dtype=np.int64)
        self.items, self.kinds = _new_items(self._draw(3 * N_ITEMS))
        self.readings = self._sense()

    def __len__(self) -> int:
        return len(self.generators)

    def step(self, actions: NDArray[np.int64]) -> Array:
        """Move, eat, let time pass; then look again.

        Parameters
        ----------
        actions : array of int, shape (worlds,)
            0 to 4: straight, two slight and two sharp turns.

        Returns
        -------
        array, shape (worlds,)
            Rewards; the part for proximity is that of the readings before the move.
        """
        self.clock += 1
        rewards = self._comfort(actions)
        self._move(actions)
        rewards += self._eat()
        self._renew()
        self.readings = self._sense()
        return rewards

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name, as arrays to be stored; not copied."""
        own = {name: getattr(self, name) for name in _STATE}
        own["clock"] = np.array(self.clock)
        return {**own, "generators": states_of(self.generators)}

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a :meth:`state` of as many worlds."""
        for name in _STATE:
            setattr(self, name, np.array(state[name]))
        self.clock = int(state["clock"])
        restore(self.generators, state["generators"])
        self.readings = self._sense()

    def _comfort(self, actions: NDArray[np.int64]) -> Array:
        """Reward for keeping off the walls and for going straight (ledger E133)."""
        distance, kind = self.readings
        # E133
        proximity = np.where(kind == WALL, distance, 1.0).mean(-1)
        if self._doubled:
            proximity = np.minimum(1.0, 2.0 * proximity)
        forward = (actions == 0) & (proximity > 0.75)
        comfort: Array = proximity + 0.1 * proximity * forward
        return comfort

    def _move(self, actions: NDArray[np.int64]) -> None:
        way = displacement(self.heading, actions)
        blocked = clear_way(self.position, way[:, None])[:, 0] < 1.0
        moved = self.position + np.where(blocked[:, None], 0.0, way)
        self.position = np.clip(moved, 0.0, (WIDTH, HEIGHT))
        left, right = WHEELS[actions].T
        self.heading = (self.heading + right - left) % (2.0 * np.pi)

    def _eat(self) -> Array:
        """What is within reach and not behind a wall is eaten, with its effect."""
        gap = self.items - self.position[:, None]
        near = np.square(gap).sum(-1) < (2.0 * RADIUS) ** 2
        gained = np.zeros(len(self))
        if not near.any():
            return gained
        world, item = np.nonzero(near)
        free = clear_way(self.position[world], gap[world, item][:, None])[:, 0] == 1.0
        world, item = world[free], item[free]
        np.add.at(gained, world, DIGESTION[self.kinds[world, item]])
        self._remove(world, item)
        return gained

    def _renew(self) -> None:
        if self.clock % 100 == 0:
            old = self.clock - self.born > _OLD
            self._remove(*np.nonzero(old & (self._draw(N_ITEMS) < 0.1)))
        if self.clock % 10 == 0:
            chance, *place = np.split(self._draw(4), (1,), axis=1)
            empty = self.kinds == 0
            self._add(empty.any(1) & (chance[:, 0] < 0.25), empty.argmax(1), place[0])

    def _add(
        self, grown: NDArray[np.bool_], slots: NDArray[np.int64], drawn: Array
    ) -> None:
        items, kinds = _new_items(drawn)
        world, slot = self._rows[grown], slots[grown]
        self.items[world, slot] = items[grown, 0]
        self.kinds[world, slot] = kinds[grown, 0]
        self.born[world, slot] = self.clock

    def _remove(self, world: NDArray[np.int64], item: NDArray[np.int64]) -> None:
        self.items[world, item] = _NOWHERE
        self.kinds[world, item] = 0
        self.born[world, item] = self.clock

    def _draw(self, count: int) -> Array:
        """Uniform numbers, shape (worlds, count), each row from its own generator."""
        return np.stack([generator.random(count) for generator in self.generators])

    def _sense(self) -> Readings:
        """The nearest wall or item along each eye (ledger E131)."""
        angle = self.heading[:, None] + OFFSETS
        rays = RANGE * np.stack([np.sin(angle), np.cos(angle)], axis=-1)
        distance = clear_way(self.position, rays)
        kind = np.where(distance < 1.0, WALL, NOTHING)
        gap = self.items - self.position[:, None]
        world, item = np.nonzero(np.square(gap).sum(-1) < (RANGE + RADIUS) ** 2)
        along = _feet(gap[world, item], rays[world])
        pair, eye = np.nonzero(along < distance[world])
        # of several items the nearest is written last, and stays
        order = np.argsort(-along[pair, eye])
        pair, eye = pair[order], eye[order]
        distance[world[pair], eye] = along[pair, eye]
        kind[world[pair], eye] = self.kinds[world[pair], item[pair]]
        return Readings(distance, kind)


def _feet(gap: Array, rays: Array) -> Array:
    """Where items stand along rays (pairs, eyes, 2), in ranges; inf off the ray."""
    x, y = gap[:, None, 0], gap[:, None, 1]
    sine, cosine = rays[..., 0] / RANGE, rays[..., 1] / RANGE
    # E131: an item is met at the foot of the perpendicular from its centre
    along = (x * sine + y * cosine) / RANGE
    hit = (np.abs(x * cosine - y * sine) <= RADIUS) & (along > 0.0)
    feet: Array = np.where(hit, along, np.inf)
    return feet


def displacement(heading: Array, actions: NDArray[np.int64]) -> Array:
    """Way of an agent whose two wheels turn by r1 and r2 (ledger E130).

    dp = (5/2) (cos(t - r1) - cos(t + r2), sin(t + r2) - sin(t - r1)), with heading t
    pointing to (sin t, cos t): the average of the two wheels turning about each other.

    Parameters
    ----------
    heading : array, shape (worlds,)
        Angles t.
    actions : array of int, shape (worlds,)
        They choose r1 and r2.

    Returns
    -------
    array, shape (worlds, 2)
    """
    left, right = heading - WHEELS[actions, 0], heading + WHEELS[actions, 1]
    # E130
    way = np.stack([np.cos(left) - np.cos(right), np.sin(right) - np.sin(left)], -1)
    return 0.5 * _HALF_AXLE * way


def _new_items(drawn: Array) -> tuple[Array, NDArray[np.int64]]:
    """Places and kinds from uniform numbers (worlds, 3 items)."""
    x, y, kind = np.split(drawn, 3, axis=1)
    span = WIDTH - 2.0 * _MARGIN, HEIGHT - 2.0 * _MARGIN
    places = np.stack([_MARGIN + span[0] * x, _MARGIN + span[1] * y], axis=-1)
    return places, np.where(kind < 0.5, FOOD, POISON)
