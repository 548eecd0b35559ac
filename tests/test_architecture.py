"""The layers of docs/design.md, checked on the imports; and the public surface."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import caveat

PACKAGE = Path(caveat.__file__).parent

LAYERS = {
    -1: {"errors", "_version"},
    0: {"_validation", "_random", "_optional", "_progress", "_torch"},
    1: {"predictive", "noise", "theory", "data"},
    2: {"sampling", "training", "maxent", "evaluation"},
    3: {"estimators", "decisions"},
    4: {"rl", "scale", "serve"},
    5: {"demo", "papers"},
    6: {"cli", "__main__"},
}
LAYER_OF = {name: layer for layer, names in LAYERS.items() for name in names}
FILES = [p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py"]


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.startswith("caveat."):
                parts.add(name.split(".")[1])
    return parts


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downwards(path):
    own = part_of(path)
    assert own in LAYER_OF, f"{own} has no layer; add it to design.md and here"
    for part in imported_parts(path) - {own}:
        assert LAYER_OF[part] < LAYER_OF[own], f"{own} imports {part}"


def test_public_names_are_exactly_those_listed():
    found = {
        name
        for name, value in vars(caveat).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    helpers = {"import_module", "TYPE_CHECKING", "Any"}
    assert found - helpers <= set(caveat.__all__)
    assert all(getattr(caveat, name) is not None for name in caveat.__all__)


def test_parts_are_imported_when_asked_for():
    assert caveat.theory.NetworkKernel(depth=2) is not None
    with pytest.raises(AttributeError, match="has no attribute 'therory'"):
        caveat.therory  # noqa: B018


def test_import_brings_in_nothing_optional():
    code = (
        "import sys, caveat; "
        "print([m for m in ('pandas', 'statsmodels', 'transformers', 'torch._dynamo',"
        " 'matplotlib.pyplot', 'sklearn', 'jax', 'optuna', 'scipy', 'rich')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
