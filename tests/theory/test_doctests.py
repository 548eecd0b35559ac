"""The examples in docstrings give what they say."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["loss", "precision", "units", "kl", "bound"])
def test_examples(name):
    module = importlib.import_module(f"caveat.theory.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
