"""Parts of a page."""

import pytest

from caveat.errors import ShapeError
from caveat.papers.page import (
    Claim,
    bullets,
    claim,
    flow,
    holds,
    markdown_table,
    table,
    verdict,
)


def test_a_claim_quotes_the_paper_and_says_what_was_found():
    said = claim("it is\n    so", f"It is:\n  {verdict(True)}.")
    assert str(said) == 'The paper: "it is so"\n\nIt is: **holds**.'
    bare = claim("so", "No.", lead="", end=".")
    assert str(bare) == '"so".\n\nNo.'


def test_a_finding_may_be_a_list():
    assert str(Claim("so", "- a\n- b")).endswith('"so"\n\n- a\n- b')


def test_the_rest_of_the_page_may_say_what_was_found():
    assert str(Claim("so", end=" It is new.")) == 'The paper: "so" It is new.'


def test_verdicts():
    assert (verdict(1 > 0), verdict(0 > 1)) == ("**holds**", "**does not hold**")
    assert (holds(1 > 0), holds(0 > 1)) == ("holds", "does not hold")


def test_text_flows_and_lists_do_not():
    assert flow("a\n    b  c\n") == "a b c"
    assert bullets(["a\n  b", "c"]) == "- a b\n- c"


def test_tables():
    shown = "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert markdown_table(["a", "b"], [["1", "2"]]) == shown
    assert table([{"a": 1, "b": "2"}]) == shown


@pytest.mark.parametrize("other", [{"b": 1, "a": 2}, {"a": 1}, {"a": 1, "c": 2}])
def test_a_row_with_other_columns_is_an_error(other):
    with pytest.raises(ShapeError, match="same columns"):
        table([{"a": 1, "b": 2}, other])
