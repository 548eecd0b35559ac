"""The page docs/maxent.md runs as it stands."""

import pytest

from tests.pages import run_page


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_page():
    run_page("docs/maxent.md")
