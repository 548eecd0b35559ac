"""Which tensor of what a model returns is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.sampling.inputs import Batch
from caveat.sampling.tape import Ref
from caveat.sampling.trees import Structure, unflatten

_NO_OUTPUT = """The model returned {kind}, and it is not clear which tensor to read.
Say which:  {method}(..., output=lambda out: out[{example}])"""

_VARYING = """Draw {number} has the shape {shape}, those before have {first}: the size
of the output hangs on the noise (boxes that are left, tokens until the end), and such
draws make no tensor. Read something of one size by output=, or take the draws one by
one: [mc.function(t)(x) for t in range(100)]."""

_NAN = """The input has NaN values in {n} row(s) (first: {rows}), and the output of draw
{number} is NaN. Fill or drop them first, or let the model mask them."""

Output = Callable[[Any], Tensor]


@dataclass(frozen=True)
class Picker:
    """Picks the tensor of interest from what a model returns.

    Attributes
    ----------
    method : str
        Who asks, for messages.
    output : callable or None
        The user's choice; by default it is the only tensor, or the logits.
    """

    method: str
    output: Output | None = None

    def __post_init__(self) -> None:
        if self.output is not None and not callable(self.output):
            raise InputTypeError(
                f"output must be a function of what the model returns. "
                f"Got {self.output!r}."
            )

    def pick(self, leaves: list[Any], structure: Structure) -> Tensor:
        """The tensor of interest of one draw, given by its leaves."""
        returned = unflatten(leaves, structure)
        tensor = self._chosen(returned) if self.output else self._plain(returned)
        return self._with_rows(tensor, tensor.dim())

    def pick_block(self, leaves: list[Any], structure: Structure) -> Tensor:
        """The tensor of interest of some draws, given by leaves with draws in front."""
        if self.output is None:  # which it is does not hang on its values
            tensor = self._plain(unflatten(leaves, structure))
            return self._with_rows(tensor, tensor.dim() - 1)
        draws = next(len(v) for v in leaves if isinstance(v, Tensor))
        picked = (self.pick(nth(leaves, t), structure) for t in range(draws))
        return torch.stack(list(picked))

    def _with_rows(self, tensor: Tensor, n_axes: int) -> Tensor:
        if n_axes == 0:
            raise ShapeError(
                f"{self.method} needs an output of shape (batch, ...). Got a single "
                f"number; pick a tensor with rows by output=."
            )
        return tensor

    def position(self, leaves: list[Any], structure: Structure) -> int | None:
        """Which leaf is of interest; None if it is made of leaves by ``output``."""
        picked = self.pick(leaves, structure)
        return next((i for i, leaf in enumerate(leaves) if leaf is picked), None)

    def leaf_alone(self, leaves: Sequence[Any], structure: Structure) -> int | None:
        """Which leaf is picked, if nothing else of what is drawn is even looked at.

        Of ``leaves`` a Ref stands for what is drawn. It has no values here: a choice
        that hangs on some, or makes something of them, is none that can be foreseen.
        """
        nothing = torch.empty(0)
        untouched = [
            nothing.as_subclass(_Untouched) if isinstance(v, Ref) else v for v in leaves
        ]
        returned = unflatten(untouched, structure)
        try:
            found = self._chosen(returned) if self.output else self._plain(returned)
        except (Exception, Touched):  # of any kind: the user's code is stopped
            return None
        picked = (i for i, leaf in enumerate(untouched) if leaf is found)
        return next((i for i in picked if isinstance(leaves[i], Ref)), None)

    def _chosen(self, returned: Any) -> Tensor:
        assert self.output is not None
        tensor: Any = self.output(returned)
        if not isinstance(tensor, Tensor):
            kind = type(tensor).__name__
            raise InputTypeError(f"output= must return a tensor. Got {kind}.")
        return tensor

    def _plain(self, returned: Any) -> Tensor:
        tensor = find_output(returned)
        if tensor is None:
            example = repr(next(iter(returned))) if isinstance(returned, dict) else "0"
            kind = type(returned).__name__
            raise InputTypeError(
                _NO_OUTPUT.format(kind=kind, method=self.method, example=example)
            )
        return tensor


class _Untouched(Tensor):
    """A tensor that can be handed on, and nothing else."""

    @classmethod
    def __torch_function__(cls, func: Any, *_: Any, **__: Any) -> Any:
        raise Touched


class Touched(BaseException):
    """A value was asked for that is not there; no ``except Exception`` hides it."""


def same_shape(tensor: Tensor, first: torch.Size | None, number: int) -> torch.Size:
    """The shape of a draw, which all draws must have."""
    if first is not None and tensor.shape != first:
        raise ShapeError(
            _VARYING.format(
                number=number, shape=tuple(tensor.shape), first=tuple(first)
            )
        )
    return tensor.shape


def check_nan(leaves: Sequence[Any], batch: Batch, number: int) -> None:
    """NaN may come in, if the model knows what to do with it; it must not come out."""
    floats = (v for v in leaves if isinstance(v, Tensor) and v.is_floating_point())
    if any(bool(torch.isnan(v).any()) for v in floats) and batch.rows_with_nan:
        rows = [batch.first_row + row for row in batch.rows_with_nan]
        shown = ", ".join(map(str, rows[:10]))
        raise ParameterError(_NAN.format(n=len(rows), rows=shown, number=number))


def nth(leaves: list[Any], t: int) -> list[Any]:
    """The leaves of one draw, of leaves with draws in front."""
    return [v[t] if isinstance(v, Tensor) else v for v in leaves]


def find_output(output: Any) -> Tensor | None:
    """The tensor of a model's output, if it is plain which: itself, or its logits."""
    if isinstance(output, Tensor):
        return output
    if isinstance(getattr(output, "logits", None), Tensor):
        return output.logits
    if isinstance(output, dict) and isinstance(output.get("logits"), Tensor):
        return output["logits"]
    if isinstance(output, list | tuple) and len(output) == 1:
        return find_output(output[0])
    return None
