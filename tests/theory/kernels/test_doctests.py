"""The examples in docstrings and on the page about kernels give what they say."""

import doctest
import importlib

import pytest

from tests.pages import run_page

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
    run_page("docs/kernels.md")
