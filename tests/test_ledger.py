"""Every equation id has a row in docs/equations.md, a function and a test."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROWS = re.findall(
    r"^\| (E\d+) \|.*\| `(caveat\.[\w.]+)` \| `([\w/.]+)::(\w+)` \|$",
    (ROOT / "docs" / "equations.md").read_text(),
    flags=re.MULTILINE,
)


def cited_ids() -> set[str]:
    """Ids in the comments and docstrings of the package."""
    text = "\n".join(p.read_text() for p in (ROOT / "src").rglob("*.py"))
    return set(re.findall(r"\bE\d+\b(?=[:,) ])", text))


def test_rows_are_in_order_and_unique():
    numbers = [int(row[0][1:]) for row in ROWS]
    assert numbers == sorted(set(numbers))


def test_code_and_ledger_cite_the_same_ids():
    assert cited_ids() == {row[0] for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_function_and_test_exist(row):
    _, function, path, name = row
    parts = function.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        break
    for attribute in parts[cut:]:
        found = getattr(found, attribute)
    tree = ast.parse((ROOT / path).read_text())
    functions = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    assert name in functions
