"""The gallery shows every reproduction, and what it links to is there."""

import re
from pathlib import Path

import pytest

from caveat.papers.catalogue import REPRODUCTIONS

DOCS = Path(__file__).parents[1] / "docs"
GALLERY = (DOCS / "gallery.md").read_text()


def made_by(page):
    found = re.search(r"^Made by `(caveat reproduce [^`]+)`", page.read_text(), re.M)
    return found and found[1]


PAGES = [page for page in sorted((DOCS / "results").glob("*.md")) if made_by(page)]


def test_every_reproduction_has_a_page():
    commands = {made_by(page).split()[2] for page in PAGES}
    assert commands == {each.name for each in REPRODUCTIONS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_reproduction_stands_in_the_gallery(page):
    assert f"`{made_by(page)}` · [page](results/{page.name})" in GALLERY
    assert f"(results/{page.stem}.png)" in GALLERY


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", GALLERY))
def test_links_of_the_gallery_lead_somewhere(link):
    assert (DOCS / link).exists()


FIGURES = [*(DOCS / "figures").glob("*.png"), *(DOCS / "results").glob("*.png")]


@pytest.mark.parametrize("path", sorted(FIGURES), ids=lambda path: path.name)
def test_every_stored_figure_is_shown(path):
    pages = [page.read_text() for page in DOCS.glob("*.md")]
    assert any(f"({path.parent.name}/{path.name})" in page for page in pages)


def test_sure_mistakes_are_quoted_from_the_page_of_figure_4():
    page = (DOCS / "results" / "mnist.md").read_text()
    pattern = r"(\d+) are taken for another digit than 1; (\d+) of these"
    (total, sure), text = (
        re.findall(pattern, page)[0],
        (DOCS / "gotchas.md").read_text(),
    )
    assert f"{sure} of {total} such" in text
