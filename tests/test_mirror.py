"""Every module has a test file of its name, or a line in where.md saying which one."""

import ast
import re
from pathlib import Path

import pytest

from tests.source import FILES, PACKAGE, short, tree

TESTS = Path(__file__).parent
LINE = re.compile(r"^\| `([\w/]+\.py)` \| `([\w/]+\.py)` \|$", re.MULTILINE)
WHERE = dict(LINE.findall((TESTS / "where.md").read_text()))
MODULES = [short(path) for path in FILES if path.name != "__init__.py"]


def own_test(module: str) -> Path:
    """The test file of a module's name: ``a/_b.py`` is tested in ``a/test_b.py``."""
    path = Path(module)
    return TESTS / path.parent / f"test_{path.stem.lstrip('_')}.py"


def names(module: str) -> set[str]:
    """What a test of a module speaks of: its name, what it defines, its folders."""
    body = tree(PACKAGE / module).body
    defined = {n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    own = {Path(module).stem, *Path(module).parts[:-1]}
    return {n.lower() for n in defined if not n.startswith("_")} | own


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_tested_somewhere(module):
    if own_test(module).exists():
        return
    assert module in WHERE, f"write {own_test(module)}, or a line in where.md"
    words = re.findall(r"\w+", (TESTS / WHERE[module]).read_text().lower())
    assert set(words) & names(module), "that file does not speak of it"


@pytest.mark.parametrize("module", WHERE)
def test_a_line_is_needed(module):
    assert module in MODULES, "there is no such module: take the line out"
    assert not own_test(module).exists(), "it has its own file: take the line out"
