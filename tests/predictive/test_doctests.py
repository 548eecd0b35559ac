"""The examples in docstrings give what they say."""

import doctest
import importlib

import pytest

DOCUMENTED = [
    "accumulators",
    "categorical",
    "gaussian",
    "moment_matched",
    "moments",
    "softmax",
]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples(name):
    module = importlib.import_module(f"caveat.predictive.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
