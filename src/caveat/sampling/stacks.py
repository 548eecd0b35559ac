"""Whole outputs of a model, each of their tensors with the draws in front."""

from typing import Any, final

import torch
from torch import Tensor

from caveat._progress import ProgressBar
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.sampling.engine import Session
from caveat.sampling.inputs import Batch
from caveat.sampling.noise import Layout
from caveat.sampling.outputs import nth, same_shape
from caveat.sampling.shelf import Shelf
from caveat.sampling.trees import Structure, stackable, unflatten

_OTHER = """Draw {number} of batch {batch} returned {n} things in another structure than
the first, which had {first}. Draws of one model must be alike to be stacked."""

_NAN = """Rows {rows} of the input have NaN values, and so has the output of draw
{number}. Fill or drop them first, or let the model mask them."""


@final
class Stacks:
    """The draws of every tensor of an output.

    Parameters
    ----------
    n_draws : int
        Of every batch.
    several : bool
        Whether there may be more than one batch.
    """

    def __init__(self, n_draws: int, *, several: bool) -> None:
        self._n_draws = n_draws
        self._several = several
        self._structure: Structure | None = None
        self._first: list[Any] = []  # the leaves of the first draw
        self._shelves: list[Shelf | None] = []

    def add(
        self, number: int, batch: Batch, session: Session, bar: ProgressBar
    ) -> None:
        """Take the draws of a batch."""
        shapes: list[torch.Size | None] = [None] * session.structure.n_leaves
        suspects, draw = batch.rows_with_nan, 0
        for leaves in session.blocks(range(self._n_draws)):
            if self._structure is None:
                first = nth(leaves, 0)
                self._begin(session.structure, first, session.output_layouts)
            if len(leaves) != len(self._shelves):
                n, known = len(leaves), len(self._shelves)
                raise ShapeError(
                    _OTHER.format(number=draw, batch=number, n=n, first=known)
                )
            for i, (shelf, leaf) in enumerate(zip(self._shelves, leaves, strict=True)):
                if shelf is not None:
                    shapes[i] = same_shape(leaf[0], shapes[i], draw)
                    shelf.put(number, draw, leaf)
            if suspects and any(map(_has_nan, leaves)):
                rows = ", ".join(map(str, suspects[:10]))
                raise ParameterError(_NAN.format(rows=rows, number=draw))
            taken = next(len(v) for v in leaves if isinstance(v, Tensor))
            bar.advance(taken)
            draw += taken

    def whole(self) -> Any:
        """The outputs of all batches as one structure."""
        assert self._structure is not None
        leaves = [
            leaf if shelf is None else shelf.whole(self._n_draws)
            for leaf, shelf in zip(self._first, self._shelves, strict=True)
        ]
        return unflatten(leaves, self._structure)

    def _begin(
        self,
        structure: Structure,
        leaves: list[Any],
        layouts: tuple[Layout | None, ...],
    ) -> None:
        stacked = stackable(leaves, structure)
        if not any(stacked):
            kinds = ", ".join(sorted({type(v).__name__ for v in leaves})) or "nothing"
            raise InputTypeError(
                f"The model must return a tensor, or a dict, tuple or dataclass with "
                f"one. Got {kinds}; of another object read a tensor by "
                f"regress/classify(..., output=lambda out: ...)."
            )
        self._structure, self._first = structure, leaves
        known = layouts if len(layouts) == len(leaves) else (None,) * len(leaves)
        self._shelves = [
            Shelf(0 if at is None else at.axis, self._n_draws, several=self._several)
            if own
            else None
            for own, at in zip(stacked, known, strict=True)
        ]


def _has_nan(leaf: Any) -> bool:
    is_float = isinstance(leaf, Tensor) and leaf.is_floating_point()
    return is_float and bool(torch.isnan(leaf).any())
