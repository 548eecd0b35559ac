"""Verdicts in the words of pages, counted."""

import pytest

from caveat.papers.claims import in_a_line, opening, overall, verdict_of, verdicts
from caveat.papers.page import Claim, judging, verdict


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: **holds**; b: holds (0.1)", "holds"),
        ("a: **does not hold**", "does not hold"),
        ("a: **holds**; b: **does not hold**", "holds in part"),
        ("a: **holds** on ratings only", "holds in part"),
        ("a: **not judged**; b: **holds**", "holds"),
        ('others are "not judged"', "not judged"),
        ("nothing was said", "not judged"),
    ],
)
def test_one_verdict_of_several(text, expected):
    assert overall(verdicts(text)) == expected


def test_a_claim_without_a_finding_has_that_of_its_page():
    silent, own = Claim("a"), Claim("b", "**does not hold**")
    parts = ["- x: **holds**", silent, own]
    assert verdict_of(silent, parts) == "holds"
    assert verdict_of(own, parts) == "does not hold"


def test_opening_counts_and_is_left_out_where_nothing_is_judged():
    (line,) = opening([Claim("a", "**holds**"), "b: **does not hold**"])
    assert line == (
        "Paper: 1 claim, quoted below; ours: 2 comparisons, of which 1 holds, "
        "1 does not hold; holds in part."
    )
    (line,) = opening(["a: **does not hold**"])
    assert line == "Paper: numbers, below; ours: 1 comparison; does not hold."
    assert opening(["no verdict"]) == []
    assert opening(["Paper: a; ours: b: **holds**."]) == []


def test_a_page_in_brief_has_the_verdict_of_all_its_parts():
    parts = [Claim("a", "**holds**"), "b: **does not hold**"]
    line = in_a_line(parts, ("this\n  and that", "so"))
    assert line == "Paper: this and that; ours: so; holds in part."
    assert in_a_line(["none"], ("a", "b")) == "Paper: a; ours: b; not judged."


def test_what_is_left_open_outside_stays_open():
    with judging(False), judging(True):
        assert verdict(True) == "**not judged**"
    with judging(True), judging(False):
        assert verdict(True) == "**not judged**"
    assert verdict(True) == "**holds**"
