"""docs/files.md runs as it stands, and its commands print what it shows."""

import os
import re
import shlex
from pathlib import Path

import pytest

from caveat.cli import main
from tests.pages import page_steps

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text()


@pytest.fixture(scope="module", autouse=True)
def back_again():
    """The page goes to a folder of its own."""
    here = Path.cwd()
    yield
    os.chdir(here)


def plain(text: str) -> str:
    """Without log-likelihoods and weights, whose last digits are a machine's own."""
    return re.sub(r"-?\d\.\d{2,}", "#", text)


def test_the_page_runs(capsys):
    steps = page_steps("docs/files.md")
    next(steps)
    console = re.search(r"```console\n(.*?)```", PAGE, flags=re.DOTALL)[1]
    for command, shown in re.findall(r"^\$ caveat (.*)\n((?:.+\n)*)", console, re.M):
        assert main(shlex.split(command)) == 0
        said = capsys.readouterr()
        for line in shown.splitlines():
            assert line == "…" or plain(line) in plain(said.out + said.err), line
    assert len(list(steps)) == 4
