"""Calls like earlier ones: the short road from a tensor to its session.

One tensor of the same kind, given to a sampler of the same model, becomes the same
batch but for its values, under the same plan and the same template. So of the arguments
nothing need be asked again. What may have changed is: the model (its survey), its
tensors (where they lie), what is known of its plan, and how torch is set. If any of it
has, the call takes the long road. The seed is no part of what is remembered: it is read
off the sampler in each call.
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
    """The kinds of calls of a model that were met and can be replayed, for any seed."""

    def __init__(self, axis: int) -> None:
        self._axis = axis
        self._met: dict[Any, _Met] = {}

    def session(
        self, sampler: Sampler, inputs: tuple[Any, ...], kwinputs: dict[str, Any]
    ) -> Session | None:
        """A session for a call like one that was met; None: the long road."""
        key = _kind_of(sampler, inputs, kwinputs)
        met = None if key is None else self._met.get(key)
        if met is None:
            return None
        batch = Batch(inputs, *met.batch.form)
        seen = sampler.survey()
        plan = known_plan(sampler.model, batch, seen)
        if plan is not met.plan or met.known not in met.kind.known_for(seen.tensors):
            self._met.pop(key, None)  # another thread may have been here
            return None
        return Session.recalled(sampler, batch, plan, seen.tensors, met.kind, met.known)

    def note(
        self,
        sampler: Sampler,
        inputs: tuple[Any, ...],
        kwinputs: dict[str, Any],
        session: Session,
    ) -> None:
        """Remember a call, if later ones may take the short road."""
        key = _kind_of(sampler, inputs, kwinputs)
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


def _kind_of(
    sampler: Sampler, inputs: tuple[Any, ...], kwinputs: dict[str, Any]
) -> Any:
    """What calls must share; None for calls that are not of one plain tensor."""
    if kwinputs or len(inputs) != 1 or type(inputs[0]) is not Tensor:
        return None
    x = inputs[0]
    if x.layout is not torch.strided:
        return None
    noise = (sampler.shared, sampler.stratified)
    return x.shape, x.stride(), x.dtype, x.device, noise, ambient()
