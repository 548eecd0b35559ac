"""Calls like earlier ones: the short road from a tensor to its session.

One tensor of the same kind, given to the same sampler, becomes the same batch but for
its values, under the same plan and the same template. So of the arguments nothing need
be asked again. What may have changed is: the model (its survey), its tensors (where
they lie), what is known of its plan, and how torch is set. If any of it has, the call
takes the long road.
"""

from dataclasses import replace
from typing import Any, NamedTuple, final

import torch
from torch import Tensor

from caveat.sampling.engine import Sampler, Session, ambient
from caveat.sampling.inputs import Batch
from caveat.sampling.plans import Plan, known_plan
from caveat.sampling.store import BatchKind, Known

_MOST = 16  # kinds of calls


class _Met(NamedTuple):
    """A call that was met: all that hangs on its kind alone."""

    batch: Batch
    plan: Plan
    kind: BatchKind
    known: Known


@final
class WarmCalls:
    """The kinds of calls that a sampler has met and can replay."""

    def __init__(self, sampler: Sampler, axis: int) -> None:
        self._sampler = sampler
        self._axis = axis
        self._met: dict[Any, _Met] = {}

    def session(
        self, inputs: tuple[Any, ...], kwinputs: dict[str, Any]
    ) -> Session | None:
        """A session for a call like one that was met; None: the long road."""
        key = _kind_of(inputs, kwinputs)
        met = None if key is None else self._met.get(key)
        if met is None:
            return None
        batch = Batch(inputs, *met.batch.form)
        seen = self._sampler.survey()
        plan = known_plan(self._sampler.model, batch, seen)
        if plan is not met.plan or met.known not in met.kind.known_for(seen.tensors):
            del self._met[key]
            return None
        return Session.recalled(
            self._sampler, batch, plan, seen.tensors, met.kind, met.known
        )

    def note(
        self, inputs: tuple[Any, ...], kwinputs: dict[str, Any], session: Session
    ) -> None:
        """Remember a call, if later ones may take the short road."""
        key = _kind_of(inputs, kwinputs)
        recalled = session.recalled_way
        if key is None or recalled is None or key in self._met:
            return
        batch, plan, kind, known = recalled
        if plan.note is not None or plan.rows_mix or plan.tokens.axes:
            return
        if batch.axis != self._axis or batch.first_row or len(batch.leaves) != 1:
            return
        if len(self._met) >= _MOST:
            self._met.clear()
        nothing = replace(batch, leaves=())
        self._met[key] = _Met(nothing, plan, kind, known)


def _kind_of(inputs: tuple[Any, ...], kwinputs: dict[str, Any]) -> Any:
    """What calls must share; None for calls that are not of one plain tensor."""
    if kwinputs or len(inputs) != 1 or type(inputs[0]) is not Tensor:
        return None
    x = inputs[0]
    if x.layout is not torch.strided:
        return None
    return x.shape, x.stride(), x.dtype, x.device, ambient()
