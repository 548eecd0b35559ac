"""Agents of one policy, each in a world of its own, trained side by side."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caveat.rl import DQNFleet, QSettings
from caveat.rl.eyes.worlds import N_ACTIONS, N_EYES, Worlds

TICKS_PER_BATCH = 200  # the plotting interval of the demo that the paper used
POLICIES: dict[str, Callable[..., QSettings]] = {
    "thompson": QSettings.thompson,
    "epsilon_greedy": QSettings.epsilon_greedy,
    "thompson_inputs": partial(QSettings.thompson, drop_rates=(0.1, 0.1, 0.1)),
}
SINGLE = "_single"  # behind the name of a policy: the reward for proximity as it is
EXPLOITING = "_exploiting"  # behind the name of a policy: trained, exploring no more

_PER_CHECKPOINT = 50  # batches
_OTHER_WORLDS = 1_000  # seeds of the worlds in which trained agents are judged


@dataclass(frozen=True)
class AgentPlan:
    """How much is run."""

    n_seeds: int  # agents of each policy
    n_batches: Mapping[str, int]  # of each policy, in the order in which they start
    n_exploiting: int  # batches after training
    n_frames: int  # pictures of the film
    random_steps: int  # this and the next as in ``QSettings``
    learning_starts: int

    @property
    def burn_in(self) -> int:
        """Batches of random moves."""
        return self.random_steps // TICKS_PER_BATCH

    def settings(self, policy: str) -> QSettings:
        """Those of the paper but for the first steps."""
        return POLICIES[policy.removesuffix(SINGLE)](
            random_steps=self.random_steps, learning_starts=self.learning_starts
        )


@dataclass(frozen=True)
class Reward:
    """Mean reward of one agent in one batch of 200 ticks."""

    policy: str  # which one, and whether it has ceased to explore
    seed: int
    batch: int  # from 1
    reward: float


@dataclass(frozen=True)
class TrainedAgents:
    """What comes out: rewards, and the network of the first agent."""

    rewards: list[Reward]
    network: dict[str, NDArray[Any]]


class Run:
    """A policy in training; it goes on from its checkpoint if there is one."""

    def __init__(self, policy: str, plan: AgentPlan, checkpoint: Path) -> None:
        seeds, settings = range(plan.n_seeds), plan.settings(policy)
        self.checkpoint, self._doubled = checkpoint, not policy.endswith(SINGLE)
        self.worlds = self._new_worlds(seeds)
        self.fleet = DQNFleet(3 * N_EYES, N_ACTIONS, settings=settings, seeds=seeds)
        self.rewards: NDArray[np.float64] = np.empty((0, plan.n_seeds))
        if checkpoint.exists():
            with np.load(checkpoint) as state:
                self.load_state(dict(state))

    def advance(self) -> None:
        """One batch: 200 ticks of all worlds, and as many steps of learning."""
        total = np.zeros(len(self.fleet))
        x = self.worlds.readings.inputs()
        for _ in range(TICKS_PER_BATCH):
            actions = self.fleet.act(x)
            reward = self.worlds.step(actions)
            following = self.worlds.readings.inputs()
            self.fleet.observe(x, actions, reward, following)
            self.fleet.learn()
            total += reward
            x = following
        self.rewards = np.vstack([self.rewards, total / TICKS_PER_BATCH])

    def store(self) -> None:
        """Write a checkpoint, complete at any time."""
        self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        draft = self.checkpoint.with_suffix(".part.npz")
        np.savez(draft, **self.state())  # type: ignore[arg-type]
        draft.replace(self.checkpoint)

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes."""
        worlds = {f"world_{k}": v for k, v in self.worlds.state().items()}
        fleet = {f"fleet_{k}": v for k, v in self.fleet.state().items()}
        return {**worlds, **fleet, "rewards": self.rewards}

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from there."""
        self.worlds.load_state(_part(state, "world_"))
        self.fleet.load_state(_part(state, "fleet_"))
        self.rewards = state["rewards"]

    def exploited(self, n_batches: int) -> NDArray[np.float64]:
        """Rewards (batches, agents) in new worlds, without exploring or learning."""
        seeds = range(_OTHER_WORLDS, _OTHER_WORLDS + len(self.fleet))
        worlds = self._new_worlds(seeds)
        rewards = np.empty((n_batches, TICKS_PER_BATCH, len(self.fleet)))
        for batch, tick in np.ndindex(rewards.shape[:2]):
            x = worlds.readings.inputs()
            rewards[batch, tick] = worlds.step(self.fleet.exploit_average(x))
        return np.asarray(rewards.mean(1))

    def _new_worlds(self, seeds: Sequence[int]) -> Worlds:
        generators = [np.random.default_rng(seed) for seed in seeds]
        return Worlds(generators, doubled=self._doubled)


def train(policy: str, plan: AgentPlan, checkpoint: Path) -> TrainedAgents:
    """Train the agents of a policy, from the checkpoint if there is one."""
    run = Run(policy, plan, checkpoint)
    while len(run.rewards) < plan.n_batches[policy]:
        run.advance()
        if len(run.rewards) % _PER_CHECKPOINT == 0:
            run.store()
    records = [
        *_records(policy, run.rewards),
        *_records(policy + EXPLOITING, run.exploited(plan.n_exploiting)),
    ]
    state = run.fleet.state()
    network = {k: v[0] for k, v in state.items() if k.startswith("network_")}
    return TrainedAgents(records, network)


def _records(policy: str, rewards: NDArray[np.float64]) -> Iterator[Reward]:
    for seed, curve in enumerate(rewards.T.tolist()):
        for batch, reward in enumerate(curve, start=1):
            yield Reward(policy, seed, batch, round(reward, 4))


def _part(state: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
