"""The Dockerfile: there is no docker in the tests, so what it names is looked up."""

import json
import re

import typer

from caveat.cli.app import app
from caveat.serve.guarding import OPEN
from tests.pages import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")


def line(word):
    (found,) = re.findall(rf"^{word} (.*)$", TEXT, re.M)
    return found


def test_what_is_copied_is_there_and_all_that_is_not_ignored():
    copied = [
        name
        for names in re.findall(r"^COPY (.*) \S+$", TEXT, re.M)
        for name in names.split()
    ]
    assert all((ROOT / name).exists() for name in copied)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert sorted(copied) == sorted(x[1:] for x in ignored if x.startswith("!"))


def test_the_extras_are_those_of_the_project():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (extras,) = re.findall(r"pip install '\.\[(.*?)\]'", TEXT)
    assert set(extras.split(",")) <= set(project["optional-dependencies"])


def test_the_command_has_the_options_that_are_given():
    name, *given = json.loads(line("ENTRYPOINT"))
    assert (name, given[0]) == ("caveat", "serve")
    serve = typer.main.get_command(app).commands["serve"]
    known = {option for own in serve.params for option in own.opts}
    options = [word for word in given if word.startswith("--")]
    assert set(options) <= known
    port = given[given.index("--port") + 1]
    assert line("EXPOSE") == port and f"127.0.0.1:{port}/" in TEXT


def test_health_is_asked_where_no_token_is_needed():
    path = re.search(r"urlopen\('http://127\.0\.0\.1:\d+(/.*?)'\)", TEXT)[1]
    assert path in OPEN
    assert line("USER") == "caveat" and "useradd --system" in TEXT
