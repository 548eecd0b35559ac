"""One concept, one word: the table of docs/design.md, checked on all public names."""

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from tests.source import FILES, short, tree

DESIGN = Path(__file__).parents[1] / "docs" / "design.md"
# What other libraries call from outside, by names of their own.
FOREIGN = {"num_envs", "predict_proba", "generate"}
# Columns of stored results keep the names that they have.
FREE = "papers/"


def banned() -> dict[str, str]:
    """Each banned word, and the one that is used instead."""
    section = re.search(
        r"^## Words\n(.*?)^## ", DESIGN.read_text(), re.DOTALL | re.MULTILINE
    )
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", section[1], re.MULTILINE
    )
    return {
        word: row[1].strip() for row in rows for word in re.findall(r"`(\w+)`", row[2])
    }


@lru_cache
def public_names() -> tuple[tuple[str, str], ...]:
    """(where, name) of public functions, classes, arguments and attributes."""
    return tuple(
        (short(path), name)
        for path in FILES
        if not short(path).startswith(FREE)
        for name in names_of(tree(path).body)
    )


def names_of(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if node.name.startswith("_") and node.name != "__init__":
                continue
            yield node.name
            if isinstance(node, ast.ClassDef):
                yield from names_of(node.body)
            else:
                yield from (a.arg for a in (*node.args.args, *node.args.kwonlyargs))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if not node.target.id.startswith("_"):
                yield node.target.id


@lru_cache
def words_of(name: str) -> set[str]:
    """A name, its parts, and all runs of parts: ``n_mc_draws`` holds ``mc_draws``."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().strip("_")
    parts = snake.split("_")
    return {
        "_".join(parts[i:j])
        for i in range(len(parts))
        for j in range(i + 1, len(parts) + 1)
    }


def test_there_is_a_table():
    assert len(banned()) > 20
    assert banned()["n_samples"] == "`n_draws`"


@pytest.mark.parametrize("word", banned())
def test_no_public_name_uses_a_banned_word(word):
    found = {
        f"{where}: {name}"
        for where, name in public_names()
        if word in words_of(name) and name not in FOREIGN
    }
    assert found == set(), f"say {banned()[word]}"


@pytest.mark.parametrize(
    ("name", "word"),
    [("n_mc_samples", "mc_samples"), ("DropoutRate", "dropout_rate"), ("y_sd", "sd")],
)
def test_words_are_found_inside_names(name, word):
    assert word in words_of(name)
    assert "std" not in words_of("stdout")
