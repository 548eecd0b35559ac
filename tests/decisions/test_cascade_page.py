"""docs/cascade.md runs as it stands."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "cascade.md"


def test_page():
    result = doctest.testfile(
        str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    assert result.attempted > 10
    assert result.failed == 0
