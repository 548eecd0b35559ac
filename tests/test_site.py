"""The site: its pages name every public thing, lead somewhere, and run."""

import re
import sys
from pathlib import Path

import pytest
from sybil.document import Document
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = ("index", "network", "table", "bayes", "decide")
"""Those of the reader's questions; the pages behind them have tests of their own."""


@pytest.fixture(scope="module")
def api_pages():
    sys.path.insert(0, str(DOCS / "_site"))
    try:
        import api_pages
    finally:
        sys.path.pop(0)
    return api_pages


def test_every_public_name_is_in_the_reference(api_pages):
    pages = dict(api_pages.pages())
    text = "\n".join(pages.values())
    described = set(re.findall(r"^\.\. (?:auto|py:)\w+:: ([\w.]+)$", text, re.M))
    names = (ROOT / "tests" / "public_api.txt").read_text().split()
    assert len(names) > 100
    assert not set(names) - described


@pytest.mark.parametrize("name", PAGES)
def test_blocks_run(name):
    parser = PythonCodeBlockParser()
    document = Document.parse(str(DOCS / f"{name}.md"), parser)
    found = list(document.examples())
    assert found and isinstance(found[0].region.evaluator, PythonEvaluator)
    for example in found:
        example.evaluate()


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        assert "://" in link or (DOCS / link).exists(), link
