"""docs/scoring.md runs as it stands, and its command prints what it shows."""

import os
import re
import shlex
from pathlib import Path

from caveat.cli import main
from tests.pages import page_steps

PAGE = (Path(__file__).parents[2] / "docs" / "scoring.md").read_text()


def test_the_page_runs(capsys):
    here, steps = Path.cwd(), page_steps("docs/scoring.md")
    try:
        next(steps)
        command, shown = re.search(r"^\$ caveat (.*)\n(.*)\n", PAGE, re.M).groups()
        assert main(shlex.split(command)) == 0
        assert shown in capsys.readouterr().err
        assert len(list(steps)) == 4
    finally:
        os.chdir(here)
