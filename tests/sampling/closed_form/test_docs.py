"""The page docs/moments.md runs as it stands."""

import doctest
from pathlib import Path

import torch

PAGE = Path(__file__).parents[3] / "docs" / "moments.md"


def test_page():
    state = torch.get_rng_state()
    try:
        result = doctest.testfile(
            str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS
        )
    finally:
        torch.set_rng_state(state)
    assert result.attempted > 15
    assert result.failed == 0
