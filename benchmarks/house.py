"""How large the house is, and through how many files a call goes.

``python -m benchmarks.house`` prints, for each package, its files, lines of code, lines
of documentation and public names; what ``import caveat`` adds to ``import torch``; and
the files that four typical calls pass.
"""

import ast
import io
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

import caveat

PACKAGE = Path(caveat.__file__).parent
_IMPORT = """import time, torch
start = time.perf_counter()
import caveat
{}
print(time.perf_counter() - start)"""
_SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT}
_SILENT |= {tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}


class Size(NamedTuple):
    """What a file, or several, hold."""

    files: int
    code: int
    documentation: int
    names: int

    def plus(self, other: "Size") -> "Size":
        """Both together."""
        return Size(*(a + b for a, b in zip(self, other, strict=True)))


def size_of(path: Path) -> Size:
    """Lines of code, lines of docstrings, and public functions and classes of a file.

    A line of code holds at least one token that is neither a comment nor part of a
    docstring.
    """
    source = path.read_text()
    tree = ast.parse(source)
    documented = set(_docstring_lines(tree))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return Size(1, len(lines - documented), len(documented), len(_public(tree)))


def _public(tree: ast.Module) -> list[str]:
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [
        node.name
        for node in tree.body
        if isinstance(node, kinds) and not node.name.startswith("_")
    ]


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            expression = node.body[0]
            yield from range(expression.lineno, (expression.end_lineno or 0) + 1)


def sizes() -> dict[str, Size]:
    """Of each package, and of the files beside them."""
    found: dict[str, Size] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        first, *rest = path.relative_to(PACKAGE).parts
        name = first if rest else "(top)"
        found[name] = found.get(name, Size(0, 0, 0, 0)).plus(size_of(path))
    return found


def import_seconds(then: str = "", repetitions: int = 7) -> float:
    """What ``import caveat`` and a line after it add to ``import torch``.

    The median of new processes.
    """
    command = [sys.executable, "-c", _IMPORT.format(then)]
    times = [
        float(subprocess.run(command, capture_output=True, check=True).stdout)
        for _ in range(repetitions)
    ]
    return statistics.median(times)


@contextmanager
def passed_files() -> Iterator[set[str]]:
    """The files of the package in which a function was called meanwhile."""
    found: set[str] = set()

    def look(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            name = frame.f_code.co_filename
            if name.startswith(str(PACKAGE)):
                found.add(str(Path(name).relative_to(PACKAGE)))

    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(None)


def _regress() -> None:
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 8))
    net = nn.Sequential(net, nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))
    caveat.MCDropout(net, seed=0).regress(torch.ones(4, 3), n_draws=8, precision=1.0)


def _rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    return x, x @ np.array([1.0, -1.0, 0.5]) + rng.normal(size=40)


def _fit_networks() -> None:
    caveat.DropoutRegressor(random_state=0).fit(*_rows())


def _fit_linear() -> None:
    caveat.BayesianDropoutRegression().fit(*_rows())


def _table() -> None:
    from caveat.cli import main

    with tempfile.TemporaryDirectory() as folder:
        options = ["--quick", "--sets", "yacht", "--splits", "1", "--workers", "1"]
        code = main(["reproduce", "table1", *options, "--output", folder])
    if code:
        raise SystemExit("Table 1 was not run: set CAVEAT_DATA to the papers' data.")


WALKS: dict[str, Callable[[], None]] = {
    "MCDropout(model).regress(x)": _regress,
    "DropoutRegressor().fit(X, y)": _fit_networks,
    "BayesianDropoutRegression().fit(X, y)": _fit_linear,
    "caveat reproduce table1 --quick": _table,
}


def walked(walk: Callable[[], None]) -> set[str]:
    """The files that a call passes when all is imported."""
    with redirect_stdout(io.StringIO()):
        walk()
        with passed_files() as files:
            walk()
    return files


def main() -> int:
    """Print all of it."""
    found = sizes()
    total = Size(0, 0, 0, 0)
    for size in found.values():
        total = total.plus(size)
    for name, size in [*found.items(), ("all", total)]:
        print(
            f"{name:12} {size.files:4} files {size.code:6} code "
            f"{size.documentation:6} documentation {size.names:5} public names"
        )
    print(f"import caveat adds {import_seconds():.3f} s to import torch")
    print(f"and caveat.MCDropout {import_seconds('caveat.MCDropout'):.3f} s")
    for name, walk in WALKS.items():
        files = walked(walk)
        print(f"{name}: {len(files)} files")
        print("   ", ", ".join(sorted(files)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
