"""docs/cascade.md runs as it stands, and shows what it prints."""

import re

import pytest

from tests.pages import run_page, text_of


def accuracy(report, of):
    return float(re.search(rf"^ *{of} +(\d+\.\d+)%", report, re.M)[1])


def test_page():
    known = run_page("docs/cascade.md")
    said = str(known["report"])
    shown = re.search(r"In full.*?```text\n(.*?)```", text_of("docs/cascade.md"), re.S)
    for of in ("cascade", "always slow"):
        assert accuracy(said, of) == pytest.approx(accuracy(shown[1], of), abs=1.0)
    words = [re.sub(r"-?\d+(\.\d+)?", "#", text).split() for text in (said, shown[1])]
    assert words[0] == words[1]
