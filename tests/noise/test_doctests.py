"""The examples in docstrings give what they say."""

import doctest
import importlib
import pkgutil

import pytest

from caveat import noise

NAMES = {module.name for module in pkgutil.iter_modules(noise.__path__)}
WITHOUT = {"base", "layers", "priors", "units"}


@pytest.mark.parametrize("name", sorted(NAMES - WITHOUT))
def test_examples(name):
    module = importlib.import_module(f"caveat.noise.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
