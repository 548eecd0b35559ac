"""A LightningModule seen as the function that its ``predict_step`` is.

``predict_step`` may take a batch apart, call the module and do more to its output. It
is sampled as a whole: a view of the module, with the same parts and tensors, whose
forward is that step. Parts keep their paths, so the noise is that of the module itself.
"""

import dis
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from torch import nn


def step_view(module: nn.Module) -> nn.Module:
    """A view of a LightningModule which, called with a batch, does its predict step.

    Parameters
    ----------
    module : LightningModule
        Which is not changed.

    Returns
    -------
    nn.Module
        To be called with ``batch=`` and ``others=``, the other arguments by name.
    """
    kind: Any = type(module)  # a class is hashable, but mypy doubts it of a module's
    view: nn.Module = object.__new__(_stepping(kind))
    view.__dict__.update(module.__dict__)
    return view


@cache
def _stepping(kind: type) -> type:
    """The subclass of a module whose forward is its predict step."""

    def forward(self: Any, batch: Any, others: Mapping[str, Any]) -> Any:
        # Every pass has a copy of its own; in it, self(x) is the module again.
        own = type(self)
        object.__setattr__(self, "__class__", kind)
        try:
            return self.predict_step(batch, **others)
        finally:
            object.__setattr__(self, "__class__", own)

    return type(kind.__name__, (kind,), {"forward": forward})


def other_arguments(step: Callable[..., Any], given: list[Any]) -> dict[str, Any]:
    """The arguments of a step after its batch, by name; 0 for those it never reads.

    The number of a batch is one more input, which makes every batch a new one; nearly
    all steps name it, as Lightning's examples do, and nearly none reads it.

    Parameters
    ----------
    step : callable
        A bound ``predict_step``.
    given : list
        What Lightning has for them, in order.

    Returns
    -------
    dict of str
    """
    named = inspect.Parameter.POSITIONAL_OR_KEYWORD
    taken = [p for p in inspect.signature(step).parameters.values() if p.kind is named]
    found = zip((p.name for p in taken[1:]), given, strict=False)
    return {name: value if _reads(step, name) else 0 for name, value in found}


def _reads(step: Callable[..., Any], name: str) -> bool:
    """Whether a step may read an argument, as far as its code tells."""
    code = getattr(getattr(step, "__func__", step), "__code__", None)
    if code is None or hasattr(step, "__wrapped__"):
        return True
    if name in code.co_cellvars or {"locals", "eval", "exec"} & set(code.co_names):
        return True
    loads = (i for i in dis.get_instructions(code) if i.opname.startswith("LOAD"))
    return any(i.argval == name for i in loads)
