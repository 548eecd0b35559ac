"""The page docs/maxent.md runs as it stands."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "maxent.md"


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_page():
    result = doctest.testfile(
        str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    assert result.attempted > 30
    assert result.failed == 0
