"""The examples in docstrings give what they say."""

import doctest
import importlib

import pytest

import caveat.training


@pytest.mark.parametrize(
    "name", ["fleet", "bayesian", "search", "stores", "spec", "schedules"]
)
def test_examples(name):
    module = importlib.import_module(f"caveat.training.{name}")
    names = {n: getattr(caveat.training, n) for n in caveat.training.__all__}
    result = doctest.testmod(module, extraglobs=names)
    assert result.failed == 0


def test_there_are_examples():
    assert ">>>" in (caveat.training.train.__doc__ or "")
