"""Agents of one policy, each in a world of its own, trained side by side."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caveat.papers.rl.records import TICKS_PER_BATCH, Reward
from caveat.rl import DQNFleet, QSettings
from caveat.rl.eyes.worlds import N_ACTIONS, N_EYES, Worlds

POLICIES: dict[str, Callable[..., QSettings]] = {
    "thompson": QSettings.thompson,
    "epsilon_greedy": QSettings.epsilon_greedy,
    "thompson_inputs": partial(QSettings.thompson, drop_rates=(0.1, 0.1, 0.1)),
}
EXPLOITING = "_exploiting"  # behind the name of a policy: trained, exploring no more

_PER_CHECKPOINT = 50  # batches
_OTHER_WORLDS = 1_000  # seeds of the worlds in which trained agents are judged


@dataclass(frozen=True)
class Job:
    """A policy and how long it is trained.

    Attributes
    ----------
    policy : str
        One of ``POLICIES``.
    n_seeds, n_batches, n_exploiting : int
        Agents; batches of training, and after it of exploiting only.
    random_steps, learning_starts : int
        As in ``QSettings``.
    checkpoint : Path
        Written now and then; if it is there, the run goes on from it.
    """

    policy: str
    n_seeds: int
    n_batches: int
    n_exploiting: int
    random_steps: int
    learning_starts: int
    checkpoint: Path

    @property
    def settings(self) -> QSettings:
        """Settings of the paper but for the first steps."""
        return POLICIES[self.policy](
            random_steps=self.random_steps, learning_starts=self.learning_starts
        )


@dataclass(frozen=True)
class Trained:
    """What comes out: rewards, and the network of the first agent."""

    rewards: list[Reward]
    networks: dict[str, NDArray[Any]]


class Run:
    """A job under way.

    Parameters
    ----------
    job : Job
        What to do.
    """

    def __init__(self, job: Job) -> None:
        seeds = range(job.n_seeds)
        self.job = job
        self.worlds = Worlds([np.random.default_rng(seed) for seed in seeds])
        self.fleet = DQNFleet(3 * N_EYES, N_ACTIONS, settings=job.settings, seeds=seeds)
        self.rewards: NDArray[np.float64] = np.empty((0, job.n_seeds))
        if job.checkpoint.exists():
            with np.load(job.checkpoint) as state:
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
        self.job.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        draft = self.job.checkpoint.with_suffix(".part.npz")
        np.savez(draft, **self.state())  # type: ignore[arg-type]
        draft.replace(self.job.checkpoint)

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

    def exploited(self) -> NDArray[np.float64]:
        """Rewards (batches, agents) in new worlds, without exploring or learning."""
        seeds = range(_OTHER_WORLDS, _OTHER_WORLDS + len(self.fleet))
        worlds = Worlds([np.random.default_rng(seed) for seed in seeds])
        shape = self.job.n_exploiting, TICKS_PER_BATCH, len(self.fleet)
        rewards = np.empty(shape)
        for batch, tick in np.ndindex(shape[:2]):
            x = worlds.readings.inputs()
            rewards[batch, tick] = worlds.step(self.fleet.exploit_average(x))
        found: NDArray[np.float64] = rewards.mean(1)
        return found


def train(job: Job) -> Trained:
    """Train the agents of a job, from its checkpoint if there is one.

    Parameters
    ----------
    job : Job
        What to do.

    Returns
    -------
    Trained
    """
    run = Run(job)
    while len(run.rewards) < job.n_batches:
        run.advance()
        if len(run.rewards) % _PER_CHECKPOINT == 0:
            run.store()
    records = [
        *_records(job.policy, run.rewards),
        *_records(job.policy + EXPLOITING, run.exploited()),
    ]
    state = run.fleet.state()
    networks = {k: v[0] for k, v in state.items() if k.startswith("network_")}
    return Trained(records, networks)


def _records(policy: str, rewards: NDArray[np.float64]) -> Iterator[Reward]:
    for seed, curve in enumerate(rewards.T.tolist()):
        for batch, reward in enumerate(curve, start=1):
            yield Reward(policy, seed, batch, round(reward, 4))


def _part(state: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
