"""Claims that no page is about: what is said to show them is there."""

from pathlib import Path

import pytest

from caveat.papers.claims import HOLDS, OPEN
from caveat.papers.stated import STATED

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("each", STATED, ids=lambda each: each.words[:40])
def test_what_shows_a_claim_exists_and_the_rest_has_a_reason(each):
    if each.test:
        file, name = each.test.split("::")
        assert f"def {name}(" in (ROOT / file).read_text()
        assert each.verdict != OPEN
    else:
        assert each.verdict == OPEN
    assert each.reason or each.verdict == HOLDS
    assert each.paper[:3] in ("000", "001", "002")


def test_no_claim_is_listed_twice():
    assert len({each.words for each in STATED}) == len(STATED)
