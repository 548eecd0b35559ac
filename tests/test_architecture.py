"""The order of docs/design.md, checked on the imports; names; the public surface."""

import ast
import importlib
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import caveat
from tests.source import FILES, PACKAGE, short, tree

ROOT = Path(__file__).parent.parent
SURFACE = Path(__file__).parent / "public_api.txt"


# The order of packages


def order() -> list[str]:
    """Packages and modules from the lowest to the highest, as design.md has them."""
    text = (ROOT / "docs" / "design.md").read_text()
    block = re.search(
        r"^## Order\n.*?```text\n(.*?)```", text, re.DOTALL | re.MULTILINE
    )
    return re.split(r"\s*<\s*", block[1].strip())


PLACE = {name: place for place, name in enumerate(order())}


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    parts = set()
    for node in ast.walk(tree(path)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{short(path)}: say caveat.… in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        parts |= {n.split(".")[1] for n in names if n.startswith("caveat.")}
    return parts


def test_the_order_names_everything_once():
    there = {part_of(path) for path in FILES} - {"__init__"}
    assert set(PLACE) == there
    assert len(order()) == len(there)


@pytest.mark.parametrize("path", FILES, ids=short)
def test_imports_point_downwards(path):
    own = part_of(path)
    if own == "__init__":  # the front door opens to all rooms
        return
    for part in imported_parts(path) - {own}:
        assert PLACE[part] < PLACE[own], f"{own} imports {part}"


def upward_calls() -> set[tuple[str, str]]:
    """(file, module) of every figure that is fetched from above."""
    return {
        (short(path), node.args[0].value.split(":")[0])
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "display"
    }


def test_only_figures_are_fetched_from_above():
    assert upward_calls() == {
        ("predictive/regression.py", "caveat.evaluation.displays"),
        ("predictive/regression.py", "caveat.evaluation.maps"),
        ("predictive/classification.py", "caveat.evaluation.bars"),
        ("predictive/classification.py", "caveat.evaluation.displays"),
        ("predictive/classification.py", "caveat.evaluation.maps"),
    }


# Names


def shared_names() -> dict[str, list[str]]:
    """Public class names that are defined in more than one place."""
    homes = defaultdict(list)
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(f"{short(path)}:{node.lineno}")
    return {name: places for name, places in homes.items() if len(places) > 1}


def test_no_two_classes_share_a_name():
    assert shared_names() == {}


# Randomness

GLOBAL = re.compile(
    r"(torch(\.random|\.cuda)?\.(manual_seed|seed|set_rng_state)(_all)?|.*fork_rng"
    r"|(np|numpy)\.random\.(seed|set_state)|random\.(seed|setstate))"
)
# Where a model's own calls of Python's and numpy's generators are answered; and where
# Python's is put back after an import that draws from it, torch's after an operator
# that is not its own.
ALLOWED = {"sampling/host.py", "sampling/higher_order.py", "_progress.py"}


def seeding_files() -> set[str]:
    """Files that set or borrow the state of a generator that is not theirs."""
    return {
        short(path)
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and GLOBAL.fullmatch(ast.unparse(node.func))
    }


def test_no_global_generator_is_touched():
    assert seeding_files() == ALLOWED


# The public surface


def packages() -> list[str]:
    """All that users import from: not papers, nor the insides of sampling."""
    folders = (p.parent.relative_to(PACKAGE).parts for p in FILES)
    names = {".".join(["caveat", *parts]) for parts in folders}
    inner = ("caveat._", "caveat.papers", "caveat.sampling.")
    return sorted(name for name in names if not name.startswith(inner))


def defined_names(package: str) -> set[str]:
    """Public names that a package's ``__init__`` defines or takes from its files."""
    path = PACKAGE.joinpath(*package.split(".")[1:], "__init__.py")
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and _is_ours(node.module):
            found |= {alias.asname or alias.name for alias in node.names}
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {ast.unparse(target) for target in node.targets}
    return {name for name in found if not name.startswith("_")}


def submodules(package: str) -> set[str]:
    folder = PACKAGE.joinpath(*package.split(".")[1:])
    return {path.stem for path in folder.iterdir()}


def _is_ours(module: str | None) -> bool:
    return bool(re.fullmatch(r"caveat(\.[a-z]\w*)*", module or ""))


def listed_names(package: str) -> set[str]:
    listed = getattr(importlib.import_module(package), "__all__", [])
    return {name for name in listed if not name.startswith("_")}


def surface() -> list[str]:
    """``package.name`` of every public name; the root also offers its parts."""
    names = {f"{p}.{name}" for p in packages() for name in listed_names(p)}
    return sorted(names | {f"caveat.{part}" for part in dir(caveat) if part[0] != "_"})


@pytest.mark.parametrize("package", packages())
def test_public_names_are_exactly_those_listed(package):
    listed, inside = listed_names(package), submodules(package)
    assert defined_names(package) - inside == listed - inside
    module = importlib.import_module(package)
    assert all(hasattr(module, name) for name in listed)


def test_the_public_surface_is_the_one_on_record():
    """After a change that is meant, write the record anew:

    python -c "import tests.test_architecture as t; t.record()"
    """
    assert surface() == SURFACE.read_text().split()


def record() -> None:
    """Write the public surface as it is."""
    SURFACE.write_text("\n".join(surface()) + "\n")


def test_parts_are_imported_when_asked_for():
    assert caveat.theory.NetworkKernel(depth=2) is not None
    with pytest.raises(AttributeError, match="has no attribute 'therory'"):
        caveat.therory  # noqa: B018


def test_import_loads_no_part():
    code = (
        "import sys, torch, caveat; "
        "print([m for m in sys.modules if m.startswith('caveat.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['caveat.errors', 'caveat._version']"


def test_names_stay_once_they_are_there():
    assert caveat.MCDropout is caveat.sampling.MCDropout is vars(caveat)["MCDropout"]


def test_plain_use_brings_in_nothing_optional():
    code = (
        "import sys, caveat; caveat.MCDropout, caveat.audit, caveat.noise; "
        "print([m for m in ('pandas', 'statsmodels', 'transformers', 'torch._dynamo',"
        " 'matplotlib.pyplot', 'sklearn', 'jax', 'optuna', 'scipy', 'rich')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
