"""The Python blocks of a page, run as they stand, one after the other (Sybil).

A block of ``>>>`` lines must print what it shows. `tests/test_site.py` reads which
pages tests name here, so that no block of any page can be left out.
"""

import doctest
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from sybil.document import Document
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).parents[1]
SHOWN = re.compile(r"\s*(?:```\s*)?```text\n(.*?)```", re.S)
"""What stands directly below a block."""


def page_steps(page: str, known: dict[str, Any] | None = None) -> Iterator[dict]:
    """Run the blocks of a page, and give what is known after each.

    ``known`` is what the page takes for granted. Torch's own generator stays as it is.
    """
    for _, document in _steps(page, known):
        yield document.namespace


def run_page(page: str, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """All blocks of a page; what is known afterwards."""
    *_, last = page_steps(page, known)
    return last


def outputs(page: str) -> Iterator[tuple[str, str]]:
    """What each block prints, and what the page shows below it."""
    steps = _steps(page, None)
    while True:
        with redirect_stdout(StringIO()) as said:
            step = next(steps, None)
        if step is None:
            return
        end, document = step
        shown = SHOWN.match(document.text, end)
        yield _tidy(said.getvalue()), _tidy(shown[1] if shown else "")


def shown_of(page: str, program: str) -> str:
    """The block that a page shows as what a program of ``examples`` prints."""
    said = re.search(rf"`python {program}`.*?```text\n(.*?)```", text_of(page), re.S)
    assert said is not None, f"{page} does not show what {program} prints"
    return said[1]


def text_of(page: str) -> str:
    """As it is stored."""
    return (ROOT / page).read_text()


def assert_as_shown(said: str, shown: str) -> None:
    """The same words, and numbers that another processor could have printed."""
    words, numbers = zip(*map(_taken_apart, (said, shown)), strict=True)
    assert words[0] == words[1]
    for found, told in zip(*numbers, strict=True):
        last = 10.0 ** -len(told.partition(".")[2])  # one in its last digit
        near = max(3 * last, 0.05 * abs(float(told)))
        assert abs(float(found) - float(told)) <= near, (found, told)


def _taken_apart(text: str) -> tuple[list[str], list[str]]:
    number = r"-?\d+(?:\.\d+)?"
    return re.sub(number, "#", text).split(), re.findall(number, text)


def _steps(page: str, known: dict[str, Any] | None) -> Iterator[tuple[int, Document]]:
    parser = PythonCodeBlockParser(doctest_optionflags=doctest.ELLIPSIS)
    document = Document.parse(str(ROOT / page), parser)
    document.namespace.update({"__name__": "page"} | (known or {}))
    examples = list(document.examples())
    assert examples, f"{page} has no Python block"
    with torch.random.fork_rng(devices=[]):
        for example in examples:
            example.evaluate()
            yield example.region.end, document


def _tidy(text: str) -> str:
    text = re.sub(r"\d+% of a forward pass", "#% of a forward pass", text)  # timed
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
