"""The examples in the docstrings of deferral and conformal prediction run."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["conformal", "defer", "defer_targets", "ranks"])
def test_examples(name):
    result = doctest.testmod(importlib.import_module(f"caveat.decisions.{name}"))
    assert result.attempted > 0 and result.failed == 0
