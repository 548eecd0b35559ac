"""The examples in the docstrings run."""

import doctest

import pytest

from caveat.serve import array_models, heap, web


@pytest.mark.parametrize("module", [array_models, heap, web], ids=lambda m: m.__name__)
def test_examples(module):
    found = doctest.testmod(module)
    assert found.attempted and not found.failed
