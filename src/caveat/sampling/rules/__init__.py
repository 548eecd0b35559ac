"""How each random operation of torch uses the noise it is given.

A rule is called in place of an operation, with the pass, the operation and its
arguments. It may run other operations under the recorder (``with run.recorder:``).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from caveat._torch import OpOverload
from caveat.sampling.rules import (
    attention,
    certain,
    dropout,
    norms,
    pooling,
    random,
    recurrent,
)

_RULES: dict[OpOverload, Callable[..., Any]] = {
    **dropout.RULES,
    **attention.RULES,
    **recurrent.RULES,
    **random.RULES,
    **pooling.RULES,
    **norms.RULES,
    **certain.RULES,
}


@cache
def rule_for(func: OpOverload) -> Callable[..., Any] | None:
    """The rule of an operation; None if it is run as it is."""
    rule = _RULES.get(func)
    if rule is None and torch.Tag.nondeterministic_seeded in func.tags:
        return random.with_own_generator
    return rule


__all__ = ["rule_for"]
