"""The API reference: one page per package, from the record of public names.

The names are those of tests/public_api.txt, which a test holds against the code, so
that nothing public can be left out.
"""

import importlib
import inspect
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docstrings import plain

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "tests" / "public_api.txt"
FOLDER = ROOT / "docs" / "api"


def public_names() -> list[str]:
    """All of them, with their package."""
    return RECORD.read_text().split()


def resolve(name: str) -> Any:
    """The object, or module, of a full name."""
    package, _, last = name.rpartition(".")
    return getattr(importlib.import_module(package), last)


def by_package() -> dict[str, list[str]]:
    """Names that are no modules by the package that offers them."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in public_names():
        if inspect.ismodule(resolve(name)):
            found[name]  # a page, even if nothing else is on it
        else:
            found[name.rpartition(".")[0]].append(name)
    return dict(sorted(found.items()))


def homes() -> dict[int, str]:
    """Where each object is described: under its shortest name."""
    names = sorted(public_names(), key=lambda name: (name.count("."), name))
    found: dict[int, str] = {}
    for name in names:
        found.setdefault(id(resolve(name)), name)
    return found


def first_line(text: str | None) -> str:
    """Of a docstring."""
    return (text or "").strip().split("\n\n")[0].replace("\n", " ")


def heading(text: str, mark: str = "=") -> str:
    """A title in reStructuredText."""
    return f"{text}\n{mark * len(text)}\n"


def entry(name: str, home: str) -> str:
    """The description of one name, or where it is."""
    thing = resolve(name)
    kind = kind_of(thing)
    if name != home:
        return f".. py:{kind}:: {name}\n\n   The same as :py:obj:`{home}`.\n"
    if kind == "data":
        return f".. autodata:: {name}\n   :no-value:\n"
    if kind == "class":
        return f".. autoclass:: {name}\n   :show-inheritance:\n"
    return f".. auto{kind}:: {name}\n"


def kind_of(thing: Any) -> str:
    """As Sphinx names it."""
    if inspect.isclass(thing):
        return "exception" if issubclass(thing, BaseException) else "class"
    return "function" if inspect.isroutine(thing) else "data"


def page(package: str, names: list[str], where: dict[int, str]) -> str:
    """The page of one package."""
    module = importlib.import_module(package)
    parts = [heading(package), first_line(module.__doc__) + "\n"]
    parts.append(f".. py:module:: {package}\n")
    parts.append(contents(names))
    parts += [entry(name, where[id(resolve(name))]) for name in names]
    return "\n".join(parts)


def contents(names: list[str]) -> str:
    """The names of a page, each with its first line."""
    if len(names) < 2:
        return ""
    rows = "".join(_name_row(name) for name in names)
    return f".. list-table::\n   :widths: auto\n\n{rows}"


def _name_row(name: str) -> str:
    """Text as Sphinx wants it; of a value nothing is known but its name."""
    thing = resolve(name)
    said = "" if kind_of(thing) == "data" else first_line(inspect.getdoc(thing))
    short = name.rpartition(".")[2]
    return f"   * - :py:obj:`{short} <{name}>`\n     - {plain(said)}\n"


def overview(packages: dict[str, list[str]]) -> str:
    """The first page: what each package is for."""
    rows = "".join(_row(package) for package in packages)
    tree = "".join(f"   {package}\n" for package in packages)
    return (
        heading("API")
        + "\nEvery public name, by the package that offers it. What is not here may"
        + " change without notice.\n\n.. list-table::\n   :widths: auto\n\n"
        + rows
        + "\n.. toctree::\n   :hidden:\n\n"
        + tree
    )


def _row(package: str) -> str:
    said = first_line(importlib.import_module(package).__doc__)
    return f"   * - :doc:`{package}`\n     - {said}\n"


def pages() -> Iterator[tuple[str, str]]:
    """Name and text of every page."""
    packages, where = by_package(), homes()
    yield "index", overview(packages)
    for package, names in packages.items():
        yield package, page(package, names, where)


def write(*_: object) -> None:
    """Write them where they changed, and remove those of packages that are gone."""
    FOLDER.mkdir(exist_ok=True)
    found = {f"{name}.rst": text for name, text in pages()}
    for path in FOLDER.glob("*.rst"):
        if path.name not in found:
            path.unlink()
    for name, text in found.items():
        path = FOLDER / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app: Any) -> dict[str, bool]:
    """Let Sphinx write them before it looks for sources."""
    app.connect("config-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
