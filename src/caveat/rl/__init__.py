"""Deep reinforcement learning that explores by dropout (paper 001, section 5.4).

Needs the extra ``rl``. Importing this makes ``caveat/Eyes-v0``, the world of the paper,
known to Gymnasium; all else is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from caveat._optional import require

if TYPE_CHECKING:
    from caveat.rl.eyes.environment import EyesEnv, EyesVectorEnv
    from caveat.rl.qlearning.agent import DropoutQAgent
    from caveat.rl.qlearning.fleet import DQNFleet
    from caveat.rl.qlearning.settings import Annealed, QSettings
    from caveat.rl.sb3 import DropoutDQNPolicy

_HOMES = {
    "DropoutQAgent": "qlearning.agent",
    "DQNFleet": "qlearning.fleet",
    "QSettings": "qlearning.settings",
    "Annealed": "qlearning.settings",
    "DropoutDQNPolicy": "sb3",
    "EyesEnv": "eyes.environment",
    "EyesVectorEnv": "eyes.environment",
}

__all__ = [
    "DropoutQAgent",
    "DQNFleet",
    "QSettings",
    "Annealed",
    "DropoutDQNPolicy",
    "EyesEnv",
    "EyesVectorEnv",
]

require("gymnasium", extra="rl").register(
    "caveat/Eyes-v0",
    entry_point="caveat.rl.eyes.environment:EyesEnv",
    vector_entry_point="caveat.rl.eyes.environment:EyesVectorEnv",
)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'caveat.rl' has no attribute {name!r}")
    if _HOMES[name] == "sb3":
        require("stable_baselines3", extra="rl")
    return getattr(import_module(f"caveat.rl.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
