"""Contextual bandits: models of rewards, agents that explore by them, and regret."""

from typing import TYPE_CHECKING, Any

from caveat._optional import require
from caveat.decisions.bandits.agents import (
    EpsilonGreedyAgent,
    ThompsonAgent,
    UniformAgent,
)
from caveat.decisions.bandits.annealing import annealed_rate
from caveat.decisions.bandits.linear import LinearRewards, SharedLinearRewards
from caveat.decisions.bandits.networks import DropoutRewards, EnsembleRewards
from caveat.decisions.bandits.problems import (
    BanditProblem,
    BanditRounds,
    ClassificationProblem,
    LinearProblem,
    SmoothProblem,
    WheelProblem,
)
from caveat.decisions.bandits.protocols import Agent, RewardModel
from caveat.decisions.bandits.refitted import RefittedRewards
from caveat.decisions.bandits.replay import ReplayTraining
from caveat.decisions.bandits.runs import (
    BanditRun,
    RegretCurve,
    compare_agents,
    run_bandit,
)

if TYPE_CHECKING:
    from caveat.decisions.bandits.displays import RegretDisplay

__all__ = [
    "Agent",
    "BanditRun",
    "ClassificationProblem",
    "DropoutRewards",
    "EnsembleRewards",
    "EpsilonGreedyAgent",
    "LinearProblem",
    "LinearRewards",
    "BanditProblem",
    "RefittedRewards",
    "RegretCurve",
    "RegretDisplay",
    "ReplayTraining",
    "RewardModel",
    "BanditRounds",
    "SharedLinearRewards",
    "SmoothProblem",
    "ThompsonAgent",
    "UniformAgent",
    "WheelProblem",
    "annealed_rate",
    "compare_agents",
    "run_bandit",
]


def __getattr__(name: str) -> Any:
    if name == "RegretDisplay":  # matplotlib is imported when it is asked for
        require("matplotlib", extra="plot")
        from caveat.decisions.bandits.displays import RegretDisplay

        return RegretDisplay
    raise AttributeError(f"module 'caveat.decisions.bandits' has no attribute {name!r}")
