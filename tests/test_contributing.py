"""CONTRIBUTING.md works as it stands: its examples are applied to a copy and run."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_architecture import order

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
EXAMPLES = dict(re.findall(r"^## (\d\. .*?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
NEW = re.compile(r"New,\s`([^`]+)`:\n\n```python\n(.*?)^```", re.M | re.S)
# Folders that are copied, without the networks that reproductions keep.
LEFT_OUT = {"src": (), "tests": (), "docs": ("lenet", "*.nets", "rl_checkpoints")}
TOOLS = Path(sys.executable).parent


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.M | re.S)


def new_files(text: str) -> dict[str, str]:
    return dict(NEW.findall(text))


def hunks(text: str) -> list[tuple[str, list[str]]]:
    """Files of the diffs of an example, with the lines of each change."""
    found = []
    for block in blocks(text, "diff"):
        for part in re.split(r"^\+\+\+ ", block, flags=re.M)[1:]:
            path, changes = part.split("\n", 1)
            found += [(path, c.splitlines()) for c in changes.split("@@\n")]
    return found


def touched() -> set[str]:
    """All files that examples make or change."""
    texts = EXAMPLES.values()
    return {path for text in texts for path in {**new_files(text), **dict(hunks(text))}}


def changed(lines: list[str], hunk: list[str]) -> list[str]:
    """The lines of a file after a change, whose old lines must be there just once."""
    old = [line[1:] for line in hunk if line[0] != "+"]
    places = [k for k in range(len(lines)) if _starts(lines[k:], old)]
    assert len(places) == 1, f"{len(places)} places with {old}"
    rest = iter(lines[places[0] :])
    new = []
    for line in hunk:
        held = line[1:] if line[0] == "+" else next(rest)
        new += [held] * (line[0] != "-")
    return [*lines[: places[0]], *new, *rest]


def _starts(lines: list[str], old: list[str]) -> bool:
    pairs = zip(lines, old, strict=False)
    return len(lines) >= len(old) and all(_is(line, wanted) for line, wanted in pairs)


def _is(line: str, wanted: str) -> bool:
    if wanted.endswith("…"):
        return line.startswith(wanted.removesuffix("…"))
    return line == wanted


def apply(text: str, folder: Path) -> None:
    for path, code in new_files(text).items():
        assert not (folder / path).exists(), f"{path} is there: choose another example"
        (folder / path).write_text(code)
    for path, hunk in hunks(text):
        file = folder / path
        file.write_text("\n".join(changed(file.read_text().split("\n"), hunk)))


def run(command: str, folder: Path) -> None:
    """A command of the page, with the tools of this environment, in a copy."""
    words = [w.replace(".venv/bin", str(TOOLS)) for w in shlex.split(command)]
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.fixture
def copied(tmp_path):
    """A copy of the repository, as far as tests need it."""
    for part, left_out in LEFT_OUT.items():
        ignore = shutil.ignore_patterns("__pycache__", *left_out)
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.fixture
def with_all(copied):
    """A copy with all the examples."""
    for text in EXAMPLES.values():
        apply(text, copied)
    return copied


def test_there_are_four_examples():
    assert [name[:2] for name in EXAMPLES] == ["1.", "2.", "3.", "4."]
    for text in EXAMPLES.values():
        assert len(blocks(text, "python")) == len(new_files(text))
        assert len(blocks(text, "diff")) == 1 and hunks(text)
        assert "-m pytest" in blocks(text, "bash")[0]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_works(name, copied):
    apply(EXAMPLES[name], copied)
    for command in blocks(EXAMPLES[name], "bash")[0].splitlines():
        run(command, copied)


def test_examples_keep_the_rules(with_all):
    rules, *_ = blocks(PAGE, "bash")
    assert "test_architecture.py" in rules
    run(rules, with_all)


def test_examples_are_clean(with_all):
    files = " ".join(path for path in touched() if path.endswith(".py"))
    run(f".venv/bin/ruff check {files}", with_all)
    run(f".venv/bin/ruff format --check {files}", with_all)


@pytest.mark.slow
def test_examples_have_types(with_all):
    run(".venv/bin/mypy src/caveat", with_all)


def test_a_change_must_find_its_place():
    assert changed(["a", "bcd", "e"], [" b…", "+x", "-e", "+f"]) == "a bcd x f".split()
    for lines in (["a"], ["b", "b"]):
        with pytest.raises(AssertionError, match="places"):
            changed(lines, [" b", "+x"])


def test_commands_are_in_the_makefile():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    named = set(re.findall(r"`make ([a-z-]+)", PAGE))
    assert named >= {"install", "test", "check", "format", "bench", "compat"}
    assert named <= set(targets)


def test_files_that_are_named_are_there():
    made = {path for text in EXAMPLES.values() for path in new_files(text)}
    pattern = r"\b(?:src|tests|docs)/[\w/]+\.\w+|[A-Z]+\.md"
    named = set(re.findall(pattern, re.sub(r"^\+.*", "", PAGE, flags=re.M)))
    assert len(named) > 10
    missing = {path for path in named - made if not (ROOT / path).exists()}
    assert missing == set()


def test_rooms_are_in_their_order():
    rooms = re.findall(r"^\| `(\w+)` \|", PAGE, re.M)
    assert rooms == [name for name in order() if name in rooms]
    assert set(order()) - set(rooms) == {n for n in order() if n[0] == "_"} | {"errors"}
