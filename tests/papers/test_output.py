"""The files that a reproduction leaves behind."""

import pytest
from matplotlib.figure import Figure

from caveat.papers.output import Output


@pytest.mark.parametrize(
    ("quick", "stem", "command"),
    [
        (False, "thing", "`caveat reproduce thing`,"),
        (True, "thing_quick", "`caveat reproduce thing --quick`,"),
    ],
)
def test_page_says_what_made_it(quick, stem, command, tmp_path):
    files = Output(tmp_path / "out", "thing", quick)
    page = files.write(["Title", "Text."], Figure())
    assert page.startswith("# Title\n\nMade by ") and page.endswith("\n\nText.\n")
    assert command in page and ("smoke test" in page) == quick
    assert (tmp_path / "out" / f"{stem}.md").read_text() == page
    assert (tmp_path / "out" / f"{stem}.png").exists()
