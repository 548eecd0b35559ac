"""The site: its pages name every public thing, lead somewhere, and run."""

import ast
import dataclasses
import inspect
import re
import shlex
import sys
import tomllib
from importlib import import_module

import pytest
import typer.main

from caveat.cli.app import app
from tests.pages import ROOT, outputs

DOCS = ROOT / "docs"
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("results/*.md")]
)
ALONE = ("index", "network", "table", "bayes", "decide", "operate", "training")
"""Pages of `docs` that need nothing given, and are run here; others near their code."""
BY_HAND = {
    "README.md": "tests/test_readme.py",  # each block takes something for granted
    "CONTRIBUTING.md": "tests/test_contributing.py",  # its blocks are new files
}
BLOCK = re.compile(r"^ *```(\S+)[^\n]*\n(.*?)^ *```", re.M | re.S)
SHELL = {"bash", "console", "sh", "text"}


def blocks(page, kinds):
    """Blocks of a page in these languages."""
    found = BLOCK.findall((ROOT / page).read_text())
    return [text for kind, text in found if kind in kinds]


@pytest.fixture(scope="module")
def site_module():
    """Imports of modules that make the site."""

    def imported(name):
        sys.path.insert(0, str(DOCS / "_site"))
        try:
            return import_module(name)
        finally:
            sys.path.pop(0)

    return imported


@pytest.fixture(scope="module")
def api_pages(site_module):
    return site_module("api_pages")


def test_every_public_name_is_in_the_reference(api_pages):
    pages = dict(api_pages.pages())
    text = "\n".join(pages.values())
    described = set(re.findall(r"^\.\. (?:auto|py:)\w+:: ([\w.]+)$", text, re.M))
    names = (ROOT / "tests" / "public_api.txt").read_text().split()
    assert len(names) > 100
    assert not set(names) - described


def described(*docs):
    """Names of parameters and attributes that docstrings describe."""
    found = re.findall(
        r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .*)?$", "\n".join(docs), re.M
    )
    return {name.strip(" *") for names in found for name in names.split(",")}


def given_names(thing):
    """What is passed to a function or class, but for what is private."""
    parameters = inspect.signature(thing).parameters
    return {n for n in parameters if n not in ("self", "cls") and n[0] != "_"}


def test_every_name_of_the_reference_says_what_it_is(api_pages):
    """A summary; of functions all parameters and answers; of values all parts."""
    missing = []
    for name in api_pages.public_names():
        thing = api_pages.resolve(name)
        doc = inspect.getdoc(thing) or ""
        if not doc.strip() and (callable(thing) or inspect.ismodule(thing)):
            missing.append(name)
        if inspect.isroutine(thing):
            answers = inspect.signature(thing).return_annotation not in (None, "None")
            says = re.search(r"^(Returns|Yields)\n-+$", doc, re.M)
            missing += [name] * (answers and not says)
            missing += [f"{name}({n})" for n in given_names(thing) - described(doc)]
        elif inspect.isclass(thing) and (
            dataclasses.is_dataclass(thing) or hasattr(thing, "_fields")
        ):
            docs = [inspect.getdoc(k) or "" for k in thing.__mro__]
            # A predictive is made by its class methods; so is its n_draws.
            left = given_names(thing) - described(*docs) - {"n_draws"}
            missing += [f"{name}.{n}" for n in left]
    assert not missing


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_first_pages_say_what_deferring_prints(page):
    """The numbers below the first figure are those of docs/decide.md, which is run."""
    shown = (DOCS / "decide.md").read_text()
    counts = re.search(r"^Deferral: (\d+) rows, .* (\d+) deferred", shown, re.M)
    shares = re.search(r"^wrong: (\S+%) of all, (\S+%) of the accepted", shown, re.M)
    (rows, deferred), (wrong, left) = counts.groups(), shares.groups()
    text = (ROOT / page).read_text()
    said = re.search(r"of \d+\s\[digits\].*of the others\.", text, re.S)
    numbers = re.findall(r"(?<![\w/])[\d.]+%?(?=\s)", said[0])
    assert numbers == [rows, wrong, deferred, left]


def test_the_first_figure_is_of_the_rows_that_are_counted(site_module, tmp_path):
    front = site_module("front")
    found = front.computed()
    shown = (DOCS / "decide.md").read_text()
    wrong, deferred = found.wrong, found.deferred
    assert f"{len(wrong)} rows, {(~deferred).sum()} accepted" in shown
    assert f"wrong: {wrong.mean():.1%} of all, {wrong[~deferred].mean():.1%}" in shown
    drawn = front.figure(found)
    texts = [t.get_text() for ax in drawn.axes for t in ax.texts]
    assert f"{wrong.mean():.1%} wrong if it answers all" in texts
    drawn.savefig(tmp_path / "front.png", dpi=30)


@pytest.mark.parametrize("name", ALONE)
def test_blocks_run_and_print_what_is_shown(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for said, shown in outputs(f"docs/{name}.md"):
        assert said == shown


def pages_that_tests_run():
    """Names that are given to `run_page` or `page_steps` anywhere in the tests."""
    found = {f"docs/{name}.md" for name in ALONE} | set(BY_HAND)
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text()
        if "tests.pages" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if is_call and node.func.id in ("run_page", "page_steps"):
                found |= {a.value for a in node.args[:1] if isinstance(a, ast.Constant)}
    return found


def test_every_python_block_of_every_page_is_run():
    having = {page for page in PAGES if blocks(page, {"python"})}
    assert len(having) > 25
    assert having == pages_that_tests_run() & having
    assert not pages_that_tests_run() - having, "pages without a block"


def test_blocks_of_pages_by_hand_are_all_found():
    from tests import test_contributing, test_readme

    assert blocks("README.md", {"python"}) == test_readme.BLOCKS
    new = test_contributing.NEW.findall((ROOT / "CONTRIBUTING.md").read_text())
    assert blocks("CONTRIBUTING.md", {"python"}) == [text for _, text in new]


def test_blocks_have_a_known_language():
    """So that none is Python under another name."""
    known = SHELL | {"python", "diff", "nginx", "{toctree}", "text"}
    found = {
        kind for page in PAGES for kind, _ in BLOCK.findall((ROOT / page).read_text())
    }
    assert not found - known, found - known


def said_commands():
    """Every call of `caveat` in blocks of shell and in the text, with its page."""
    for page in PAGES:
        text = (ROOT / page).read_text()
        for block in blocks(page, SHELL):
            lines = block.replace("\\\n", " ").splitlines()
            yield from ((page, c) for c in map(_called, lines) if c)
        for quoted in re.findall(r"`(caveat [a-z][^`\n]*)`", text):
            yield page, quoted


def _called(line):
    found = re.match(r"(?:\$ )?(caveat [a-z].*)", line.split(" #")[0].strip())
    return found and found[1]


COMMANDS = sorted(set(said_commands()))


def test_commands_were_found():
    assert len(COMMANDS) > 30


NEW = {"averaging": typer.main.get_command(app)}
"""What a reader of CONTRIBUTING.md adds."""


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_commands_and_their_options_exist(page, line):
    words = shlex.split(line)[1:]
    commands = [typer.main.get_command(app)]
    while words and hasattr(commands[0], "commands"):
        name, inside = words.pop(0), commands[0].commands
        is_any = name == "…" or name.isupper()  # "caveat reproduce NAME"
        assert is_any or name in inside | NEW, f"{page}: {line}"
        commands = list(inside.values()) if is_any else [(inside | NEW)[name]]
    params = [param for command in commands for param in command.params]
    known = {option for one in params for option in one.opts + one.secondary_opts}
    known |= {"--help"}
    given = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert not given - known, f"{page}: {line}"


@pytest.mark.parametrize(
    "line",
    sorted(
        {
            found
            for page in PAGES
            for found in re.findall(
                r"\bmake ([a-z][a-z-]+)",
                "\n".join(
                    [
                        *re.findall(r"`(make [^`]+)`", (ROOT / page).read_text()),
                        *blocks(page, SHELL),
                    ]
                ),
            )
        }
    ),
)
def test_targets_of_make_exist(line):
    assert re.search(rf"^{line}:", (ROOT / "Makefile").read_text(), re.M)


@pytest.mark.parametrize(
    "module",
    sorted(
        {
            found
            for page in PAGES
            for found in re.findall(
                r"python -m (benchmarks[.\w]*)", (ROOT / page).read_text()
            )
        }
    ),
)
def test_benchmarks_that_are_named_exist(module):
    path = ROOT / module.replace(".", "/")
    assert path.with_suffix(".py").exists() or (path / "__main__.py").exists()


def test_extras_of_the_readme_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "README.md").read_text()
    table = text.split("## Extras")[1].split("\n## ")[0]
    said = re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert said == [name for name in project["optional-dependencies"] if name != "dev"]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = BLOCK.sub("", (ROOT / page).read_text())
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        assert "://" in link or ((ROOT / page).parent / link).exists(), link
