"""The page docs/moments.md runs as it stands."""

from tests.pages import run_page


def test_page():
    run_page("docs/moments.md")
