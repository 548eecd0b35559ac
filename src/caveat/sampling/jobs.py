"""What is asked of a model: how many draws, and of which output."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from caveat import _validation as check
from caveat.errors import InputTypeError, ShapeError
from caveat.predictive import CategoricalAccumulator, GaussianAccumulator
from caveat.sampling.engine import Session

_NO_OUTPUT = """The model returned {kind}, and it is not clear which tensor to read.
Say which:  {method}(..., output=lambda out: out[{example}])"""

_FIRST_ROUND = 32  # draws before a tolerance is first looked at
_BLOCK = 1 << 20  # numbers gathered before they are summarised

Output = Callable[[Any], Tensor]
Accumulator = GaussianAccumulator | CategoricalAccumulator


@dataclass(frozen=True)
class Job:
    """What was asked of a model: how many draws, of which of its outputs."""

    n_draws: int
    tolerance: float | None
    max_draws: int
    keep_draws: bool
    method: str
    output: Output | None

    def __post_init__(self) -> None:
        check.positive_int("n_draws", self.n_draws)
        check.positive_int("max_draws", self.max_draws)
        if self.tolerance is not None:
            check.unit_interval("tolerance", self.tolerance)
        if self.output is not None and not callable(self.output):
            raise InputTypeError(
                f"output must be a function of what the model returns. "
                f"Got {self.output!r}."
            )

    @property
    def first_round(self) -> int:
        if self.tolerance is None:
            return self.n_draws
        return min(_FIRST_ROUND, self.max_draws)

    def satisfied(self, done: int, errors: Iterator[float]) -> bool:
        """Whether ``done`` draws are enough, with these relative errors."""
        if self.tolerance is None or done >= self.max_draws:
            return True
        return all(error <= self.tolerance for error in errors)

    def picked(self, session: Session, draws: range) -> Iterator[Tensor]:
        """The tensor of interest of each draw."""
        for leaves in session.outputs(draws):
            yield self.pick(leaves, session)

    def pick(self, leaves: list[Any], session: Session) -> Tensor:
        """The tensor of interest among the leaves of a draw."""
        output = pytree.tree_unflatten(leaves, session.structure)
        return self._pick(output)

    def position(self, session: Session) -> int | None:
        """Which leaf is of interest; None if it is made of leaves by ``output``."""
        leaves = session.first_leaves
        picked = self.pick(leaves, session)
        return next((i for i, leaf in enumerate(leaves) if leaf is picked), None)

    @staticmethod
    def blocks(draws: Iterator[Tensor]) -> Iterator[Tensor]:
        """Several draws at a time: (draws, batch, *event)."""
        block: list[Tensor] = []
        for tensor in draws:
            block.append(tensor.clone())
            if len(block) * tensor.numel() >= _BLOCK or len(block) == 256:
                yield torch.stack(block)
                block = []
        if block:
            yield torch.stack(block)

    def _pick(self, output: Any) -> Tensor:
        tensor = self.output(output) if self.output is not None else find_output(output)
        if not isinstance(tensor, Tensor):
            kind = f"{type(output).__name__}" if self.output is None else "an object"
            if self.output is not None:
                raise InputTypeError(
                    f"output= must return a tensor. Got {type(tensor).__name__}."
                )
            example = repr(next(iter(output))) if isinstance(output, dict) else "0"
            raise InputTypeError(
                _NO_OUTPUT.format(kind=kind, method=self.method, example=example)
            )
        if tensor.dim() == 0:
            raise ShapeError(
                f"{self.method} needs an output of shape (batch, ...). Got a single "
                f"number; pick a tensor with rows by output=."
            )
        return tensor


def find_output(output: Any) -> Any:
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
