"""Everything of the user's that a call could change, remembered and compared."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from tests.zoo.specimen import Inputs


class Snapshot:
    """Takes note of a model, its inputs and the process; compares later.

    Tensors are compared by value, attributes by identity, containers by the identity
    of what they hold.
    """

    def __init__(self, model: nn.Module, inputs: Inputs):
        self.model, self.inputs = model, inputs
        self.attributes = {m: _attributes(m) for m in all_modules(model)}
        self.tensors = [_Noted(name, t) for name, t in _tensors(model, inputs)]
        self.process = _process()

    def assert_unchanged(self, after: str) -> None:
        assert list(all_modules(self.model)) == list(self.attributes), after
        for module, before in self.attributes.items():
            _assert_same(
                before, _attributes(module), f"{type(module).__name__}, {after}"
            )
        for noted in self.tensors:
            noted.assert_unchanged(after)
        _assert_same(self.process, _process(), f"the process, {after}")


def all_modules(model: nn.Module) -> Iterator[nn.Module]:
    """Modules of the tree, and those that hide in plain lists and dicts."""
    seen: set[nn.Module] = set()
    waiting = [model]
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        yield module
        held = [*module.__dict__.values(), *module._modules.values()]
        leaves = pytree.tree_leaves(held, is_leaf=_is_module)
        waiting += [x for x in leaves if _is_module(x)]


def _is_module(value: Any) -> bool:
    return isinstance(value, nn.Module)


@dataclass
class _Noted:
    """A tensor as it was."""

    name: str
    tensor: Tensor

    def __post_init__(self) -> None:
        self.value = self.tensor.detach().clone()
        self.requires_grad, self.grad = self.tensor.requires_grad, _grad(self.tensor)
        self.grad_value = None if self.grad is None else self.grad.clone()

    def assert_unchanged(self, after: str) -> None:
        where = f"{self.name}, {after}"
        now, before = _dense(self.tensor.detach()), _dense(self.value)
        assert torch.equal(now, before), f"value of {where}"
        assert self.tensor.requires_grad == self.requires_grad, where
        assert _grad(self.tensor) is self.grad, f".grad of {where}"
        if self.grad is not None:
            assert torch.equal(self.grad, self.grad_value), f".grad of {where}"


def _dense(tensor: Tensor) -> Tensor:
    return tensor if tensor.layout == torch.strided else tensor.to_dense()


def _grad(tensor: Tensor) -> Tensor | None:
    return tensor.grad if tensor.is_leaf else None


def _tensors(model: nn.Module, inputs: Inputs) -> Iterator[tuple[str, Tensor]]:
    for module in all_modules(model):
        for store in (module._parameters, module._buffers):
            for name, tensor in store.items():
                if tensor is not None:
                    yield f"{type(module).__name__}.{name}", tensor
    for i, leaf in enumerate(pytree.tree_leaves(inputs)):
        if isinstance(leaf, Tensor):
            yield f"input {i}", leaf


def _attributes(module: nn.Module) -> dict[str, Any]:
    """Each attribute, with containers opened one level (hooks and buffers too)."""
    noted: dict[str, Any] = {}
    for name, value in module.__dict__.items():
        noted[name] = value
        if isinstance(value, dict):
            noted[f"{name} keys"] = list(value)
            noted |= {f"{name}[{k!r}]": v for k, v in value.items()}
        elif isinstance(value, list):
            noted[f"{name} length"] = len(value)
            noted |= {f"{name}[{i}]": v for i, v in enumerate(value)}
    return noted


def _process() -> dict[str, Any]:
    numpy_state = np.random.get_state()  # noqa: NPY002
    return {
        "torch generator": torch.get_rng_state().tolist(),
        "numpy generator": [numpy_state[1].tolist(), *numpy_state[2:]],
        "random generator": random.getstate(),
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "default dtype": torch.get_default_dtype(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "threads": torch.get_num_threads(),
        "fast path": torch.backends.mha.get_fastpath_enabled(),
        "flash sdpa": torch.backends.cuda.flash_sdp_enabled(),
        "math sdpa": torch.backends.cuda.math_sdp_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }


_PLAIN = int | float | str | bool | tuple | list | torch.dtype | torch.Size


def _assert_same(before: dict[str, Any], now: dict[str, Any], where: str) -> None:
    assert list(now) == list(before), f"attributes of {where}"
    for name, value in before.items():
        same = now[name] is value
        if not same and isinstance(value, _PLAIN) and not _holds_tensors(value):
            same = now[name] == value
        assert same, f"{name} of {where}: {value!r} became {now[name]!r}"


def _holds_tensors(value: Any) -> bool:
    return any(isinstance(x, Tensor) for x in pytree.tree_leaves(value))
