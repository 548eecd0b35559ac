"""Other forms of the same random operation: into ``out=``, or in place and not.

``torch.rand(3, out=x)``, and ``aten.uniform(x)`` of exported graphs, draw as the usual
form does.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from caveat._torch import OpOverload, OpOverloadPacket, op_overload
from caveat.sampling.passes import Pass

_aten = torch.ops.aten

Rule = Callable[..., Any]


def others(rules: dict[OpOverload, Rule]) -> dict[OpOverload, Rule]:
    """Rules for the other forms of operations that have one."""
    found: dict[OpOverload, Rule] = {}
    for func, rule in rules.items():
        packet, name = func.overloadpacket, op_overload(func)
        into = _overload(packet, "out" if name == "default" else f"{name}_out")
        if into is not None:
            found[into] = _into(func, rule)
        if packet.__name__.endswith("_"):
            anew = _overload(getattr(_aten, packet.__name__[:-1], None), name)
            if anew is not None and anew not in rules:
                found[anew] = _anew(func, rule)
    return found


def _overload(packet: OpOverloadPacket | None, name: str) -> OpOverload | None:
    known = packet is not None and name in packet.overloads()
    return getattr(packet, name) if known else None


def _into(func: OpOverload, rule: Rule) -> Rule:
    def call(run: Pass, _: OpOverload, *args: Any, out: Tensor, **kwargs: Any) -> Any:
        drawn = rule(run, func, *args, **kwargs)
        with run.recorder:
            if out.shape != drawn.shape:
                out.resize_(drawn.shape)
            return out.copy_(drawn)

    return call


def _anew(func: OpOverload, rule: Rule) -> Rule:
    def call(run: Pass, _: OpOverload, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        with run.recorder:
            target = torch.empty_like(x)
        return rule(run, func, target, *args, **kwargs)

    return call
