"""docs/scoring.md runs as it stands, and its command prints what it shows."""

import os
import re
import shlex
from pathlib import Path

from caveat.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "scoring.md").read_text()


def test_the_page_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 5
    here, known = Path.cwd(), {"__name__": "page"}
    try:
        exec(blocks[0], known)
        command, shown = re.search(r"^\$ caveat (.*)\n(.*)\n", PAGE, re.M).groups()
        assert main(shlex.split(command)) == 0
        assert shown in capsys.readouterr().err
        exec("\n".join(blocks[1:]), known)
    finally:
        os.chdir(here)
