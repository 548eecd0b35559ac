"""The gallery shows every reproduction, and what it links to is there."""

import re
from pathlib import Path

import pytest

from caveat.papers.catalogue import REPRODUCTIONS

DOCS = Path(__file__).parents[1] / "docs"
GALLERY = (DOCS / "gallery.md").read_text()


@pytest.mark.parametrize("name", [each.name for each in REPRODUCTIONS])
def test_every_reproduction_stands_in_the_gallery(name):
    assert f"`caveat reproduce {name}` · [page](results/{name}.md)" in GALLERY
    assert f"(results/{name}.png)" in GALLERY


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", GALLERY))
def test_links_of_the_gallery_lead_somewhere(link):
    assert (DOCS / link).exists()


@pytest.mark.parametrize("path", sorted((DOCS / "results").glob("*.png")))
def test_every_figure_of_the_results_is_shown(path):
    pages = [GALLERY, *(page.read_text() for page in DOCS.glob("*.md"))]
    assert any(f"(results/{path.name})" in page for page in pages)
