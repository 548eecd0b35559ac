"""The examples in docstrings run as they stand."""

import doctest
import importlib
import pkgutil

import pytest

from caveat import evaluation

NAMES = [module.name for module in pkgutil.iter_modules(evaluation.__path__)]
WITHOUT = {"axes", "targets"}


@pytest.mark.parametrize("name", sorted(set(NAMES) - WITHOUT))
def test_examples(name):
    module = importlib.import_module(f"caveat.evaluation.{name}")
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0 and result.failed == 0


def test_all_names_are_there():
    assert all(getattr(evaluation, name) is not None for name in evaluation.__all__)
