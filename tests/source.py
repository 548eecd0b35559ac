"""The source as it is read by tests about the code itself."""

import ast
from pathlib import Path

import caveat

PACKAGE = Path(caveat.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))


def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text())


def short(path: Path) -> str:
    """The path of a file inside the package."""
    return path.relative_to(PACKAGE).as_posix()
