"""Text that is safe, and numbers as people read them."""

import math
from html.parser import HTMLParser

import pytest

from caveat.reports.glossary import GLOSSARY
from caveat.reports.markup import (
    Cell,
    count,
    number,
    numeric,
    percent,
    short,
    table,
    term,
    text,
    words,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (1.0, "1.00"),
        (-0.01234, "−0.0123"),
        (123456.0, "123,456"),
        (1.5e9, "1.50e9"),
        (2e-9, "2.00e−9"),
        (math.inf, "∞"),
        (math.nan, "–"),
    ],
)
def test_numbers(value, shown):
    assert number(value) == shown


def test_percentages_never_round_to_all_or_nothing():
    assert percent(0.5) == "50.0\u00a0%" and percent(1.0) == "100.0\u00a0%"
    assert percent(0.0004) == "under 0.1\u00a0%"
    assert percent(0.9999) == "over 99.9\u00a0%"
    assert percent(0.0) == "0.0\u00a0%" and percent(math.nan) == "–"


def test_counts():
    assert count(1, "row") == "1 row" and count(2000, "row") == "2,000 rows"


def test_nothing_from_data_becomes_markup():
    bad = "</td><script>alert('x')</script>\"\x00\u202e\ud800"
    for made in (text(bad), short(bad * 9), words(bad).html, Cell(text(bad)).html):
        assert "<script" not in made and "alert('" not in made
        assert made.count('"') in (0, 2)  # around a title, at most
        assert "\x00" not in made and "\u202e" not in made
        made.encode()  # half a character cannot be written to a file


def test_long_names_are_cut_with_the_rest_one_hover_away():
    made = short("x" * 100, 10)
    assert made.count("x") == 9 + 34 and made.endswith("…</span>")


def test_a_term_carries_its_meaning():
    made = term("ECE", "calibration error")
    assert GLOSSARY["ECE"].split(":")[0] in made and ">calibration error<" in made
    assert 'tabindex="0"' in made


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def test_a_table_has_headings_and_keys():
    made = table("Rows", ["a", "b"], [[words("<x>"), numeric(2.5)]], sortable=True)
    parser = Tags()
    parser.feed(made)
    heads = [attrs for tag, attrs in parser.seen if tag == "th"]
    assert [head["scope"] for head in heads] == ["col", "col"]
    assert heads[1]["class"] == "num"
    assert [a["data-v"] for tag, a in parser.seen if tag == "td"] == ["<x>", "2.5"]
    assert any("data-sortable" in attrs for _, attrs in parser.seen)
