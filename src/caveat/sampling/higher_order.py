"""Operations whose inside is unknown: those that take functions, and those not torch's.

A branch or a loop (``torch.cond``) is run as Python would run it, so that all that
happens inside is seen. Scans and ``flex_attention`` are run whole; what they return can
only be replayed if no noise came before, as their functions may hold any of it. Custom
operators are functions of their arguments. All of this is right as long as nothing is
drawn inside, which the state of the generator tells.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import Tensor

from caveat._torch import HigherOrderOperator
from caveat.errors import UnsupportedModelError

_DRAWS_INSIDE = """The operator {name} draws random numbers inside, where they cannot be
controlled. Draw them before it (torch.rand, torch.bernoulli) and pass it the tensor."""


class _Recorder(AbstractContextManager[Any], Protocol):
    """What is needed of the recorder: entered, it sees what is run."""

    def ran_unseen(self, name: str, result: Any) -> None: ...


def run_higher_order(
    recorder: _Recorder, func: HigherOrderOperator, args: Any, kwargs: dict[str, Any]
) -> Any:
    """Run ``func(*args, **kwargs)`` under ``recorder``."""
    seen = in_python(func)
    if seen is not None:
        with recorder:
            return seen(*args, **kwargs)
    result = run_unknown(func, args, kwargs)
    recorder.ran_unseen(func.name(), result)
    return result


def run_unknown(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operation that must not draw, and see that it has not."""
    before = torch.get_rng_state()
    result = func(*args, **kwargs)
    if not torch.equal(before, torch.get_rng_state()):
        torch.set_rng_state(before)
        raise UnsupportedModelError(_DRAWS_INSIDE.format(name=func.name()))
    return result


def in_python(func: Any) -> Callable[..., Any] | None:
    """What does the same in plain Python, if that is known."""
    return _SEEN.get(func.name()) if isinstance(func, HigherOrderOperator) else None


def _cond(
    decides: Any,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    return (if_true if bool(decides) else if_false)(*operands)


def _while_loop(
    goes_on: Callable[..., Tensor],
    body: Callable[..., Any],
    carried: Sequence[Any],
    additional: Sequence[Any] = (),
) -> Any:
    values = tuple(carried)
    while bool(goes_on(*values, *additional)):
        values = tuple(body(*values, *additional))
    return values


_SEEN: dict[str, Callable[..., Any]] = {"cond": _cond, "while_loop": _while_loop}
