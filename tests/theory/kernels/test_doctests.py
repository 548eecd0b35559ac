"""The examples in docstrings and on the page about kernels give what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "kernels.md"
MODULES = [
    "smooth",
    "quadrature",
    "naming",
    "recursion",
    "network",
    "features",
    "limit",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(f"caveat.theory.kernels.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_page():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0
