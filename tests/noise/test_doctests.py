"""The examples in docstrings give what they say."""

import doctest
import importlib

import pytest

FILES = """
bernoulli gaussian concrete dropconnect mixture components low_rank factorised
recurrent total insertion decay
"""


@pytest.mark.parametrize("name", FILES.split())
def test_examples(name):
    module = importlib.import_module(f"caveat.noise.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
