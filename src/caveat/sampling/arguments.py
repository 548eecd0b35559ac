"""Which arguments of a call have the rows.

Sizes suggest it, the model decides: a plan is made for what the sizes suggest, and if
rows are not independent under it, for what else they may mean. An adjacency matrix or
a temperature may come before the rows, a table may be as long as the batch by accident.
"""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from caveat.errors import CaveatError
from caveat.sampling.host import watched_host_generators
from caveat.sampling.inputs import Batch
from caveat.sampling.plans import Plan, known_plan, look


def call_batch(
    model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, axis: int
) -> Batch:
    """The arguments of a call as a batch whose rows are those of the model."""
    return argument_batch(model, Batch.of(args, kwargs, axis=axis, model=model))


def argument_batch(model: nn.Module, batch: Batch) -> Batch:
    """The reading of a batch under which its rows are independent, if there is one."""
    sized = [isinstance(v, Tensor) and v.dim() > batch.axis for v in batch.leaves]
    if sum(sized) < 2:
        return batch
    second = None
    for reading in batch.readings():
        try:
            plan = known_plan(model, reading)
        except CaveatError:
            raise
        except Exception:  # not even the whole batch: the call itself will say why
            return batch
        if plan.rows_mix:
            continue
        if _leads(plan, batch.axis):
            return reading
        second = second or reading
    return second or batch


def _leads(plan: Plan, axis: int) -> bool:
    """Whether all outputs with rows have them where a batch is expected."""
    axes = {layout.axis for layout in plan.outputs if layout is not None}
    return axes <= {0, axis}


def can_run(model: nn.Module, make: Callable[[], Batch]) -> bool:
    """Whether a model can be called so."""
    try:
        with watched_host_generators():
            look(model, make())
    except Exception:
        return False
    return True
