"""Docstrings as Sphinx wants them: bars and citations are text, types no links."""

import inspect
import re
from typing import Any

from sphinx.util.inspect import stringify_signature

CITATION = re.compile(r"\[(\w+)\]_|^(\s*)\.\. \[(\w+)\]")
LITERAL = re.compile(r"(``.*?``)")
SECTION = re.compile(r"^(Parameters|Returns|Yields)\n-+$", re.M)
FOREIGN = re.compile(r"set_\w+_request|get_metadata_routing")
"""What scikit-learn adds to every estimator, with references into its own pages."""


def plain(line: str) -> str:
    """A line whose |W|² and (*batch, d) are no markup."""
    parts = LITERAL.split(CITATION.sub(r"\2[\1\3]", line))
    return "".join(p if p.startswith("``") else _escaped(p) for p in parts)


def _escaped(text: str) -> str:
    text = text.replace("|", r"\|")
    return re.sub(
        r"(?<![\w*\\])(\*{1,2})(?=\w+[,)\]: ]|,)(?!\w[^*]*\w\*)", _stars, text
    )


def _stars(found: re.Match[str]) -> str:
    return found[1].replace("*", r"\*")


def process(
    _app: Any, _what: str, _name: str, _o: Any, _opt: Any, lines: list[str]
) -> None:
    """Change the lines in place, before numpydoc's sections are read."""
    lines[:] = [
        line if ">>>" in line or "..." in line else plain(line) for line in lines
    ]


def skip(
    _app: Any, _what: str, name: str, _o: Any, skipped: bool, _opt: Any
) -> bool | None:
    """Leave out what is scikit-learn's."""
    return True if FOREIGN.fullmatch(name) else None


def signature(
    _app: Any, what: str, _name: str, thing: Any, _opt: Any, args: str, returned: str
) -> tuple[str, str] | None:
    """Types where no section has them: of members with a summary alone."""
    says = SECTION.search(inspect.getdoc(thing) or "")
    if what not in ("method", "function") or says:
        return None
    found = inspect.signature(thing)
    given = [p for name, p in found.parameters.items() if name != "self"]
    whole = found.replace(parameters=given)
    text = stringify_signature(whole, unqualified_typehints=True)
    text, _, answer = text.partition(" -> ")
    return text, answer


def setup(app: Any) -> dict[str, bool]:
    """Before napoleon."""
    app.connect("autodoc-process-docstring", process, priority=100)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
