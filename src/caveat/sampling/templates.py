"""A recorded pass in two parts, to be used again for other noise and other inputs.

The *clean* part leads from the inputs and weights to everything that noise meets; it is
run once a batch. The *noisy* part is run once a draw. Both are straight lines of
operations without any Python code of the model. What had reached Python when the pass
was recorded is checked on the way (``checks.py``): a batch that gives other values
there is not of this template.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from caveat._torch import below_autograd, storage_address
from caveat.sampling.checks import Departed
from caveat.sampling.dispatch import storage_copy, whole_storage
from caveat.sampling.inputs import Batch
from caveat.sampling.program import Program
from caveat.sampling.recorder import Recorder
from caveat.sampling.tape import Ref, Tape
from caveat.sampling.trees import Structure

Constants = dict[int, Tensor]


class Inlet(NamedTuple):
    """A value of the clean part that is an input."""

    number: int
    leaf: int  # which, among those of the batch
    place: tuple[int, int] | None  # in its storage, if that is copied as a whole


@dataclass(frozen=True, eq=False)
class Template:
    """How a model computes its outputs, for batches of one kind.

    Attributes
    ----------
    structure : Structure
        How the leaves of an output make up what the model returns.
    bound : str or None
        Why it is good for no other batch.
    certain : bool
        No drawn value reached Python: every draw goes this way.
    memo : dict
        What others found out about it, and keep here.
    """

    structure: Structure
    bound: str | None
    certain: bool
    _noisy: Tape  # without the constants that hang on the batch
    _outputs: tuple[Any, ...]  # of the pass: Ref, or what is the same in every batch
    _clean: Program
    _inlets: tuple[Inlet, ...]
    _handed: tuple[int, ...]  # values that the clean part ends in
    memo: dict[Any, Any] = field(default_factory=dict)

    def constants_for(self, batch: Batch) -> Constants:
        """Run the clean part: all that the noisy part needs to know of a batch.

        Raises :class:`Departed` if the model might go another way.
        """
        given = {}
        for number, leaf, place in self._inlets:
            given[number] = batch.leaves[leaf]
            if place is not None and _place(given[number]) != place:
                raise Departed("another place in memory")
        with torch.no_grad(), below_autograd():
            values = self._clean.bound(given).once()
        for number, tensor in zip(self._handed, values, strict=True):
            if tuple(tensor.shape) != self._noisy.values[number].shape:
                raise Departed("another shape")
        return dict(zip(self._handed, values, strict=True))

    def tape(self, constants: Constants) -> Tape:
        """The noisy part for a batch, as a tape of its own."""
        bound = self._noisy.copy()
        bound.constants.update(
            {n: c for n, c in constants.items() if n in self._needed}
        )
        bound.outputs = self.leaves(constants)
        return bound

    def leaves(self, constants: Constants) -> list[Any]:
        """What the model returns; Ref for what depends on noise."""
        return [
            constants.get(out.number, out) if isinstance(out, Ref) else out
            for out in self._outputs
        ]

    @property
    def n_noisy(self) -> int:
        """How many outputs depend on noise."""
        return len(self._noisy.outputs)

    @property
    def handed(self) -> frozenset[int]:
        """Numbers of the values that hang on the batch."""
        return frozenset(self._handed)

    @property
    def _needed(self) -> frozenset[int]:
        found = self.memo.get("needed")
        if found is None:
            reads = {n for op in self._noisy.ops for n in op.reads()}
            found = self.memo["needed"] = frozenset(reads & set(self._handed))
        return found


def template_of(
    recorder: Recorder, leaves: list[Any], structure: Any, batch: Batch
) -> tuple[Template, Constants]:
    """The template of a finished pass on ``batch`` that returned ``leaves``."""
    whole, transcript = recorder.finish(leaves), recorder.transcript
    drawn = {n for op in whole.ops if op.noisy for n in op.results if n is not None}
    drawn |= whole.noises.keys()
    noisy = _part(whole, noisy=True)
    noisy.outputs = [r for r in whole.outputs if _is_one_of(r, drawn)]
    noisy.constants = {**whole.constants, **transcript.kept}
    noisy.drop_dead()
    clean = _part(whole, noisy=False)
    ends = [n for n in noisy.constants if n not in whole.constants]
    ends += [r.number for r in whole.outputs if isinstance(r, Ref)]
    handed = tuple(n for n in dict.fromkeys(ends) if n not in drawn)
    clean.outputs = [Ref(n) for n in handed]
    clean.constants = {**whole.constants, **transcript.sources}
    clean.noises = {}
    clean.drop_dead()
    inlets = _inlets(clean, transcript.sources, batch)
    for number, *_ in inlets or ():
        clean.constants[number] = torch.empty(0)
    bound = transcript.bound
    if inlets is None:
        bound = bound or "it holds a part of the input that no operation made"
    constants = {n: transcript.kept[n] for n in handed}
    noisy.constants = {n: c for n, c in noisy.constants.items() if n not in constants}
    certain = not any(op.is_check for op in noisy.ops)
    program = Program(clean, frozenset())
    outputs = tuple(whole.outputs)
    parts = (noisy, outputs, program, inlets or (), handed)
    return Template(structure, bound, certain, *parts), constants


def _part(whole: Tape, *, noisy: bool) -> Tape:
    return replace(whole.copy(), ops=[op for op in whole.ops if op.noisy is noisy])


def _is_one_of(out: Any, numbers: set[int]) -> bool:
    return isinstance(out, Ref) and out.number in numbers


def _inlets(
    clean: Tape, sources: dict[int, Tensor], batch: Batch
) -> tuple[Inlet, ...] | None:
    """Which of the sources are inputs; None if that cannot be told of one."""
    leaves = [(i, v) for i, v in enumerate(batch.leaves) if isinstance(v, Tensor)]
    storages = {storage_address(v) for _, v in leaves}
    copied = {
        n
        for op in clean.ops
        if op.func in (storage_copy, whole_storage)
        for n in op.reads()
    }
    found: list[Inlet] = []
    for number, tensor in sources.items():
        if number not in clean.constants or storage_address(tensor) not in storages:
            continue
        own = next((i for i, v in leaves if v is tensor or _same_view(v, tensor)), None)
        if own is None:
            return None
        place = _place(tensor) if number in copied else None
        found.append(Inlet(number, own, place))
    return tuple(found)


def _same_view(left: Tensor, right: Tensor) -> bool:
    return (
        left.layout is right.layout is torch.strided
        and storage_address(left) == storage_address(right)
        and left.shape == right.shape
        and left.stride() == right.stride()
        and left.storage_offset() == right.storage_offset()
        and left.dtype == right.dtype
    )


def _place(tensor: Tensor) -> tuple[int, int]:
    return int(tensor.storage_offset()), tensor.untyped_storage().nbytes()
