"""The front door: lazy, clear about what is missing; and the examples in docstrings."""

import doctest
import importlib
import sys

import pytest

import caveat
from caveat.errors import MissingExtraError


@pytest.mark.parametrize(
    "name",
    [
        "eyes.geometry",
        "eyes.worlds",
        "eyes.environment",
        "qlearning.settings",
        "qlearning.fleet",
        "qlearning.agent",
        "sb3",
    ],
)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(f"caveat.rl.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


def test_names():
    for name in caveat.rl.__all__:
        assert getattr(caveat.rl, name) is not None
    assert dir(caveat.rl) == sorted(caveat.rl.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Tompson'"):
        caveat.rl.Tompson  # noqa: B018


def test_a_missing_gymnasium_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(MissingExtraError, match=r"gymnasium.*\n.*caveat\[rl\]"):
        importlib.reload(caveat.rl)


def test_a_missing_stable_baselines_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(MissingExtraError, match=r"stable_baselines3.*\n.*caveat\[rl\]"):
        caveat.rl.DropoutDQNPolicy  # noqa: B018
