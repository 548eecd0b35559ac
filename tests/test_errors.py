"""Every ``raise`` in the package is of our kind, and of a built-in kind."""

import ast
import inspect
from functools import cache

import pytest

from caveat import errors
from tests.source import FILES, short, tree

BUILT_IN = (ValueError, TypeError, IndexError, RuntimeError, OSError, ImportError)
TREE = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, errors.CaveatError)
}
# Raised by what a protocol asks for, not told to a user as something gone wrong.
PROTOCOLS = {"AttributeError", "StopIteration", "typer.Exit", "typer.BadParameter"}
# Signals between our own functions: caught before a user can see them.
SIGNALS = {
    "AutogradInside": "sampling/guard.py",
    "CompilerWanted": "_torch.py",
    "Departed": "sampling/checks.py",
    "MoreSites": "exporting/tracing.py",
    "NotSupportedError": "sampling/closed_form/beliefs.py",
    "NoRuleError": "sampling/closed_form/propagation.py",
    "Touched": "sampling/outputs.py",
}


def own_errors() -> set[str]:
    """Names of classes that derive from our errors and, thereby or so, a kind."""
    found = set(TREE) - {"CaveatError"}
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                bases = {ast.unparse(base) for base in node.bases}
                if bases & found or ("CaveatError" in bases and len(bases) > 1):
                    found.add(node.name)
    return found


def makers() -> set[str]:
    """Names of functions that are said to return one of our errors."""
    return {
        node.name
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef)
        and node.returns is not None
        and ast.unparse(node.returns) in TREE
    }


def raised() -> list[tuple[str, int, str]]:
    """(file, line, what) of every raise; a bare one passes on what was caught."""
    found = []
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Raise) and node.exc is not None:
                exc = node.exc
                what = ast.unparse(exc.func if isinstance(exc, ast.Call) else exc)
                found.append((short(path), node.lineno, what))
    return found


def test_every_raise_is_of_our_kind():
    own = own_errors() | makers()
    allowed = own | PROTOCOLS | set(SIGNALS)
    strange = [
        f"{file}:{line} {what}"
        for file, line, what in raised()
        if what not in allowed and what.rpartition(".")[2] not in own
    ]
    assert strange == []


@cache
def classes_and_handlers():
    kinds = (ast.ClassDef, ast.ExceptHandler)
    return [
        (short(path), node)
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, kinds)
    ]


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_is_defined_where_it_is_said_to_be_and_is_caught(name):
    nodes = classes_and_handlers()
    homes = {f for f, n in nodes if isinstance(n, ast.ClassDef) and n.name == name}
    assert homes == {SIGNALS[name]}
    handlers = (n.type for _, n in nodes if isinstance(n, ast.ExceptHandler) and n.type)
    assert any(name in ast.unparse(handler) for handler in handlers)


@pytest.mark.parametrize("name", sorted(set(TREE) - {"CaveatError"}))
def test_an_error_is_also_a_built_in_one_and_stands_in_the_tree(name):
    (kind,) = (base for base in BUILT_IN if issubclass(TREE[name], base))
    assert f"{name} " in errors.__doc__
    line = next(x for x in errors.__doc__.splitlines() if f" {name} " in x)
    assert f"(also {kind.__name__})" in line


def test_no_message_is_longer_than_600_characters():
    import torch

    from caveat import _validation as check
    from caveat.evaluation import evaluate
    from caveat.predictive import GaussianPredictive

    long = list(range(-100_000, 0))
    predictive = GaussianPredictive.from_draws(torch.zeros(2, 3), precision=1.0)
    calls = (
        lambda: check.precision(long),
        lambda: check.positive_int("n_draws", long),
        lambda: check.one_of("kind", "x" * 10_000, ["a"]),
        lambda: predictive[tuple(long)],
        lambda: evaluate(predictive, ["a" * 10_000] * 3),
        lambda: predictive.interval(str(long)),
    )
    for call in calls:
        with pytest.raises(errors.CaveatError) as caught:
            call()
        assert len(str(caught.value)) <= 600
    whole = "must be short. Got " + "x" * 10_000 + "; do this."
    for kind in TREE.values():
        text = str(kind(whole))
        assert text.startswith("must be short") and text.endswith("do this.")
        assert len(text) <= 600


def test_a_short_message_is_left_alone():
    assert str(errors.DataError("no file")) == "no file"
    assert str(errors.ParameterError("x" * 600)) == "x" * 600
