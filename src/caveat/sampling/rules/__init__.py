"""How each random operation of torch uses the noise it is given.

A rule is called in place of an operation, with the pass, the operation and its
arguments. It may run other operations under the recorder (``with run.recorder:``).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from caveat._torch import OpOverload
from caveat.sampling.passes import Pass
from caveat.sampling.rules import (
    attention,
    certain,
    convolution,
    distributions,
    dropout,
    forms,
    norms,
    ordering,
    pooling,
    random,
    recurrent,
)

_RANDOM: dict[OpOverload, Callable[..., Any]] = {
    **dropout.RULES,
    **attention.RULES,
    **recurrent.RULES,
    **random.RULES,
    **distributions.RULES,
    **forms.others({**random.RULES, **distributions.RULES}),
}
_OTHER: dict[OpOverload, Callable[..., Any]] = {
    **pooling.RULES,
    **convolution.RULES,
    **norms.RULES,
    **ordering.RULES,
    **certain.RULES,
}


@cache
def rule_for(func: OpOverload) -> Callable[..., Any] | None:
    """The rule of an operation; None if it is run as it is."""
    if func in _RANDOM:
        return _unless_seeded(_RANDOM[func])
    if func in _OTHER:
        return _OTHER[func]
    if torch.Tag.nondeterministic_seeded in func.tags:
        return _unless_seeded(random.with_own_generator)
    return None


def _unless_seeded(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule, but for numbers that the model has chosen by a seed of its own."""

    def chosen(run: Pass, func: OpOverload, *args: Any, **kwargs: Any) -> Any:
        if run.is_seeded(kwargs.get("generator")):
            return random.as_seeded(run, func, *args, **kwargs)
        return rule(run, func, *args, **kwargs)

    return chosen


__all__ = ["rule_for"]
