"""The examples in the docstrings of acquisition, active learning and cascades run."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "acquisition.scores",
        "acquisition.choices",
        "acquisition.joint",
        "acquisition.batch_bald",
        "acquisition.diverse",
        "active.curve",
        "active.learner",
        "cascade.cascade",
    ],
)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(f"caveat.decisions.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
