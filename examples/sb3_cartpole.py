"""Exploration by dropout for Stable-Baselines3's DQN, shown on CartPole
=====================================================================

The same learner twice over a few seeds: with random moves whose probability falls
(epsilon greedy), and with a network drawn anew for every move (Thompson sampling). What
is compared is how much each earned while it learned, and what it earns in the end.

::

    python examples/sb3_cartpole.py [--quick]
"""

import argparse
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy

from caveat.rl import DropoutDQNPolicy

ENV = "CartPole-v1"
LEARNER: dict[str, Any] = {
    "learning_rate": 1e-3,
    "batch_size": 64,
    "buffer_size": 50_000,
    "learning_starts": 500,
    "target_update_interval": 250,
    "train_freq": 4,
    "gradient_steps": 2,
    "device": "cpu",
}
THOMPSON: dict[str, Any] = {
    "policy": DropoutDQNPolicy,
    "exploration_initial_eps": 0.0,
    "exploration_final_eps": 0.0,
}
GREEDY: dict[str, Any] = {
    "policy": "MlpPolicy",
    "exploration_fraction": 0.3,
    "exploration_final_eps": 0.05,
}


class Result(NamedTuple):
    """Mean reward per episode while learning, and afterwards without exploration."""

    learning: float
    after: float


class Episodes(BaseCallback):
    """Counts the episodes of a training run."""

    count = 0

    def _on_step(self) -> bool:
        self.count += int(self.locals["dones"].sum())
        return True


def main(argv: Sequence[str] | None = None) -> None:
    """Train, and print what was earned."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    quick = parser.parse_args(argv).quick
    n_steps, seeds = (1_500, range(2)) if quick else (10_000, range(3))
    torch.set_num_threads(1)  # such small layers lose by more
    print(f"{ENV}, {n_steps:,} steps, {len(seeds)} seeds")
    print("reward per episode, mean ± sd over seeds")
    for name, settings in (("Thompson", THOMPSON), ("epsilon greedy", GREEDY)):
        results = [train(settings, seed, n_steps) for seed in seeds]
        learning, after = (spread(values) for values in zip(*results, strict=True))
        print(f"{name:15s} while learning {learning}, after {after}", flush=True)


def train(settings: dict[str, Any], seed: int, n_steps: int) -> Result:
    """One learner from scratch."""
    model = DQN(env=ENV, seed=seed, **LEARNER, **settings)
    episodes = Episodes()
    model.learn(n_steps, callback=episodes)
    after, _ = evaluate_policy(model, model.get_env(), n_eval_episodes=10)
    return Result(n_steps / max(episodes.count, 1), float(after))  # type: ignore[arg-type]


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation over seeds."""
    return f"{fmean(values):5.1f} ± {stdev(values):5.1f}"


if __name__ == "__main__":
    main()
