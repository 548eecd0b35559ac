"""Private names of torch are used in one file only, and do there what it says."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import caveat
from caveat import _torch

PACKAGE = Path(caveat.__file__).parent
HOME = PACKAGE / "_torch.py"
FILES = [path for path in PACKAGE.rglob("*.py") if path != HOME]

# Private without saying "torch": attributes of tensors, operations and modules.
ATTRIBUTES = re.compile(
    r"\b(_schema|_overloadname|_can_decompose|_cdata|_call_impl|_orig_mod|_dynamo"
    r"|_compiled_call_impl|_should_skip_dynamo|_parameters|_buffers|_modules"
    r"|_forward_hooks|_forward_pre_hooks|_VF)\b"
)


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def names_of_torch(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield dotted(node)


def private_names(source: str) -> set[str]:
    found = {
        name
        for name in names_of_torch(source)
        if name.startswith("torch.") and re.search(r"\._(?!_)", name)
    }
    found = {name for name in found if not name.startswith("torch.ops.aten.")}
    strings = {
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    attributes = {
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and dotted(node.value) != "self"
    }
    return found | {t for t in strings | attributes if ATTRIBUTES.fullmatch(t)}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_private_names_elsewhere(path):
    assert private_names(path.read_text()) == set()


def test_the_search_finds_them():
    assert private_names(HOME.read_text()) >= {
        "torch._ops.OpOverload",
        "torch.utils._pytree",
        "torch._C._set_grad_enabled",
        "_schema",
        "_buffers",
    }


def test_names_of_operations():
    aten = torch.ops.aten
    assert _torch.op_name(aten.add_.Tensor) == "add_"
    assert _torch.op_overload(aten.add_.Tensor) == "Tensor"
    assert _torch.op_name(torch.relu) == ""
    names = [argument.name for argument in _torch.op_arguments(aten.relu.default)]
    assert names == ["self"]
    assert _torch.can_decompose(aten.linear.default)
    assert not _torch.can_decompose(aten.add.Tensor)


def test_below_autograd_writes_do_not_count():
    x = torch.ones(2, requires_grad=True).detach()
    version = x._version
    with torch.no_grad(), _torch.below_autograd():
        x.add_(1)
        assert (x * torch.ones(2, requires_grad=True)).grad_fn is None
    assert x._version == version
    x.add_(1)
    assert x._version > version


def test_views_share_an_address():
    x = torch.ones(4)
    assert _torch.storage_address(x[1:]) == _torch.storage_address(x)
    assert _torch.storage_address(x.clone()) != _torch.storage_address(x)
    meta = [torch.ones(4, device="meta") for _ in range(2)]
    assert _torch.storage_address(meta[0]) != _torch.storage_address(meta[1])


def test_a_module_runs_what_is_put_in_place_of_its_call():
    layer = nn.Linear(2, 2)
    layer.__dict__[_torch.CALL] = lambda x: "caught"
    x = torch.ones(1, 2)
    assert layer(x) == "caught"
    assert torch.equal(_torch.plain_call(layer)(x), layer.forward(x))
    assert all(name in layer.__dict__ for name in (*_torch.TENSORS, _torch.MODULES))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")  # torch's own
def test_what_a_module_was_compiled_from():
    layer = nn.Linear(2, 2)
    assert _torch.compiled_from(layer) is layer
    assert _torch.compiled_from(torch.compile(layer)) is layer


def test_rows_of_nothing_are_zero():
    scores = torch.tensor([[0.0, 0.0], [-torch.inf, -torch.inf]])
    assert _torch.safe_softmax(scores, -1).tolist() == [[0.5, 0.5], [0.0, 0.0]]
