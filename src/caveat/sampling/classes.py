"""What a classifier returns, as logits with the classes last.

Which axis holds the classes, and whether the numbers are logits or probabilities, is
said by the caller or by the kind of the output. It is not guessed: a softmax over the
wrong axis, or a second one, gives probabilities that look right.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from caveat import _validation as check
from caveat._torch import op_name
from caveat.errors import ParameterError, ShapeError
from caveat.predictive.moments import working_dtype
from caveat.predictive.softmax import are_probs, look_like_probs
from caveat.sampling.endings import is_view
from caveat.sampling.engine import Session
from caveat.sampling.gathering import Reading
from caveat.sampling.outputs import Output, Picker
from caveat.sampling.rewriting.uses import Uses
from caveat.sampling.tape import Ref
from caveat.sampling.trees import Structure, unflatten

KINDS = ("logits", "probs", "logit", "sigmoid")
_SINGLE = ("logit", "sigmoid")  # one number per label, for class 1 against class 0

# Of transformers, whose outputs say by their kind where the classes are.
_KNOWN_AXES = {
    "TokenClassifierOutput": -1,
    "MaskedLMOutput": -1,
    "CausalLMOutput": -1,
    "CausalLMOutputWithPast": -1,
    "CausalLMOutputWithCrossAttentions": -1,
    "Seq2SeqLMOutput": -1,
    "SemanticSegmenterOutput": 1,
}

_ONE_COLUMN = """classify needs two or more classes on axis {axis} of the output. Got
the shape {shape}. If the one number of a row is a logit, pass output="logit"; if it
went through a sigmoid, output="sigmoid"."""

_SOFTMAX = """The rows of the output are at least 0 and sum to 1 in every draw: they
look like probabilities, and a second softmax would make them wrong. If the model ends
in a softmax, pass output="probs"; if they are logits all the same, output="logits"."""

_SIGMOIDS = """The model ends in a sigmoid of {n} columns, so they are no logits. Are
they {n} labels, each there or not? Then:
classify(..., output=lambda p: torch.stack([1 - p, p], -1).log(), class_dim=-1)
If a softmax of them is meant all the same, pass output="logits"."""

_MANY = """output={kind!r} is for one number per row, of shape (batch,) or (batch, 1).
Got the shape {shape}. If these are the classes, pass output="logits" or "probs". Of
several labels stack both classes of each, here of logits z:
output=lambda z: torch.stack([0 * z, z], -1), class_dim=-1"""


@final
@dataclass(frozen=True)
class ClassPicker(Picker):
    """Picks what a classifier returns, and makes logits of it, classes last.

    Attributes
    ----------
    kind : str or None
        What the numbers are, one of ``KINDS``; None for logits that nobody called so,
        which are looked at.
    class_dim : int or None
        The axis of the classes in what the model returns, the batch being 0.
    """

    kind: str | None = None
    class_dim: int | None = None

    @classmethod
    def of(
        cls, method: str, output: Output | str | None, class_dim: Any
    ) -> "ClassPicker":
        """From what a user may write."""
        if isinstance(output, str):
            if output not in KINDS:
                known = ", ".join(map(repr, KINDS))
                raise ParameterError(
                    f"output must be a function of what the model returns, or one of "
                    f"{known}. Got {output!r}."
                )
            return cls(method, None, output, class_dim)
        return cls(method, output, None, class_dim)

    def pick_block(self, leaves: list[Any], structure: Structure) -> Tensor:
        """Logits of some draws, (draws, batch, *extra, classes)."""
        picked = super().pick_block(leaves, structure)
        block = check.floating("The output of a classifier", picked)
        shape = tuple(block.shape[1:])
        if self.kind in _SINGLE:
            return _both(self.kind, self._numbers(block, shape))
        axis = self.axis(shape, leaves, structure)
        if shape[axis] < 2:
            raise ShapeError(_ONE_COLUMN.format(axis=axis, shape=shape))
        last = block.movedim(axis + 1, -1)
        if self.kind == "probs":
            return log_of_probs(last)
        if self.kind is None and look_like_probs(last):
            raise ParameterError(_SOFTMAX)
        return last

    def axis(
        self, shape: tuple[int, ...], leaves: list[Any], structure: Structure
    ) -> int:
        """The axis of the classes in an output of this shape."""
        n_axes = len(shape)
        if n_axes == 1:
            raise ShapeError(_ONE_COLUMN.format(axis=1, shape=shape))
        class_dim = self.class_dim
        if class_dim is None and n_axes > 2 and self.output is None:
            class_dim = _KNOWN_AXES.get(type(unflatten(leaves, structure)).__name__)
        return check.class_axis(class_dim, shape)

    def _numbers(self, block: Tensor, shape: tuple[int, ...]) -> Tensor:
        """One number per label, without an axis of classes."""
        if self.class_dim is None and len(shape) == 1:
            return block
        axis = check.class_axis(self.class_dim, shape)
        if shape[axis] != 1:
            raise ShapeError(_MANY.format(kind=self.kind, shape=shape))
        return block.squeeze(axis + 1)


@final
class Classified(Reading):
    """The logits of a classifier, draw by draw."""

    def __init__(self, session: Session, picker: ClassPicker) -> None:
        super().__init__(session, picker)
        self._classes = picker

    def blocks(self, numbers: range) -> Iterator[Tensor]:
        for number, block in enumerate(super().blocks(numbers)):
            if number == 0 and self._classes.kind is None and _within(block, 0.0, 1.0):
                self._refuse_sigmoids(block.shape[-1])
            yield block

    def moments(self) -> None:
        return None

    def _refuse_sigmoids(self, n_columns: int) -> None:
        """Numbers between 0 and 1 may be logits; not if a sigmoid made them so."""
        session, picker = self._session, self._picker
        tape = session.tape
        position = picker.position(session.first_leaves, session.structure)
        if tape is None or position is None:
            return
        output = tape.outputs[position]
        producers = Uses(tape).producer
        op = producers.get(output.number) if isinstance(output, Ref) else None
        while op is not None and is_view(op.func):
            op = next((producers[n] for n in op.reads() if n in producers), None)
        if op is not None and op_name(op.func) == "sigmoid":
            raise ParameterError(_SIGMOIDS.format(n=n_columns))


def log_of_probs(probs: Tensor) -> Tensor:
    """Logits of probabilities on the last axis: their logarithms."""
    if not are_probs(probs):
        sums = probs.sum(-1)
        raise ParameterError(
            f'output="probs" is for rows that are at least 0 and sum to 1. Got values '
            f"from {float(probs.min()):.4g} to {float(probs.max()):.4g} and sums from "
            f"{float(sums.min()):.4g} to {float(sums.max()):.4g}; if they are logits, "
            f"leave output out."
        )
    return probs.to(working_dtype(probs.dtype)).log()


def _both(kind: str, numbers: Tensor) -> Tensor:
    """Logits of class 0 and class 1."""
    wide = numbers.to(working_dtype(numbers.dtype))
    if kind == "logit":
        return torch.stack([torch.zeros_like(wide), wide], -1)
    if not _within(wide, 0.0, 1.0):
        raise ParameterError(
            f'output="sigmoid" is for probabilities. Got values from '
            f"{float(wide.min()):.4g} to {float(wide.max()):.4g}; if they are logits, "
            f'pass output="logit".'
        )
    return torch.stack([torch.log1p(-wide), wide.log()], -1)


def _within(values: Tensor, low: float, high: float) -> bool:
    first = values[(0,) * (values.ndim - 1)].tolist()
    if not all(low <= value <= high for value in first):
        return False  # the usual case, and cheap
    return bool((values >= low).all()) and bool((values <= high).all())
