"""Figures 5 and 6 of paper 001: Thompson sampling against epsilon greedy."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caveat._progress import ProgressBar
from caveat.papers.output import Output
from caveat.papers.records import read_records, write_records
from caveat.papers.rl.animation import film
from caveat.papers.rl.figure import draw
from caveat.papers.rl.records import TICKS_PER_BATCH, Reward
from caveat.papers.rl.report import render
from caveat.papers.rl.training import POLICIES, Job, train
from caveat.papers.workers import spread

__all__ = ["Plan", "reproduce_rl"]


@dataclass(frozen=True)
class Plan:
    """How much is run.

    Attributes
    ----------
    n_seeds : int
        Agents of each policy.
    n_batches : dict of str to int
        For each policy, in the order in which they start.
    n_exploiting, n_frames : int
        Batches after training, and pictures of the film.
    random_steps, learning_starts : int
        As in ``QSettings``.
    """

    n_seeds: int
    n_batches: Mapping[str, int]
    n_exploiting: int
    n_frames: int
    random_steps: int
    learning_starts: int

    @property
    def burn_in(self) -> int:
        """Batches of random moves."""
        return self.random_steps // TICKS_PER_BATCH

    @property
    def n_records(self) -> int:
        """Records of a finished run."""
        rest = len(self.n_batches) * self.n_exploiting
        return self.n_seeds * (sum(self.n_batches.values()) + rest)


FULL = Plan(
    n_seeds=8,
    n_batches={"thompson": 1_500, "epsilon_greedy": 1_500, "thompson_inputs": 250},
    n_exploiting=50,
    n_frames=160,
    random_steps=5_000,
    learning_starts=1_000,
)
QUICK = Plan(
    n_seeds=2,
    n_batches=dict.fromkeys(POLICIES, 10),
    n_exploiting=2,
    n_frames=10,
    random_steps=1_000,
    learning_starts=200,
)


def reproduce_rl(
    output: Path, *, quick: bool = False, n_workers: int | None = None
) -> str:
    """Rerun figures 5 and 6 of paper 001 (or go on with it).

    Parameters
    ----------
    output : Path
        Folder for ``rl.csv``, ``.md``, ``.png``, a film ``rl.gif`` and the network of
        the film's agent, ``rl.npz``; also checkpoints until all is done. If it holds
        ``rl.csv`` and ``rl.npz``, only page, figure and film are made anew.
    quick : bool
        Few steps: a smoke test, in files of its own.
    n_workers : int, optional
        Processes, by default one per core.

    Returns
    -------
    str
        The page, Markdown.
    """
    files, plan = Output(output, "rl", quick), QUICK if quick else FULL
    rewards = read_records(files.path("csv"), Reward)
    if len(rewards) != plan.n_records or not files.path("npz").exists():
        rewards = _train(files, plan, n_workers)
    with np.load(files.path("npz")) as networks:
        world = film(networks, files.path("gif"), n_frames=plan.n_frames)
    figure = draw(rewards, world, burn_in=plan.burn_in)
    return files.write(render(rewards, burn_in=plan.burn_in), figure)


def _train(files: Output, plan: Plan, n_workers: int | None) -> list[Reward]:
    folder = files.folder / f"{files.path('csv').stem}_checkpoints"
    jobs = _jobs(plan, folder)
    rewards: list[Reward] = []
    with ProgressBar("RL: policies", len(jobs), None) as bar:
        for job, trained in zip(jobs, spread(train, jobs, n_workers), strict=True):
            rewards += trained.rewards
            if job.policy == "thompson":
                _store(files.path("npz"), trained.networks)
            bar.advance()
    write_records(files.path("csv"), rewards)
    shutil.rmtree(folder, ignore_errors=True)
    return rewards


def _jobs(plan: Plan, folder: Path) -> Sequence[Job]:
    return [
        Job(
            policy,
            plan.n_seeds,
            n_batches,
            plan.n_exploiting,
            plan.random_steps,
            plan.learning_starts,
            folder / f"{policy}.npz",
        )
        for policy, n_batches in plan.n_batches.items()
    ]


def _store(path: Path, networks: Mapping[str, NDArray[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **networks)  # type: ignore[arg-type]
