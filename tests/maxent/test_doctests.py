"""The examples in docstrings give what they say."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name", ["hadamard", "markers", "masks", "points", "transforms"]
)
def test_examples(name):
    module = importlib.import_module(f"caveat.maxent.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
