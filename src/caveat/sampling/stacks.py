"""Whole outputs of a model, each of their tensors with the draws in front."""

from typing import Any, final

import torch
from torch import Tensor

from caveat._progress import ProgressBar
from caveat.errors import InputTypeError, ShapeError
from caveat.sampling.engine import Session
from caveat.sampling.inputs import Batch
from caveat.sampling.noise import Layout
from caveat.sampling.outputs import check_nan, nth, same_shape
from caveat.sampling.rows import is_close
from caveat.sampling.shelf import NO_ROWS, Shelf
from caveat.sampling.trees import Structure, stackable, unflatten

_OTHER = """Draw {number} of batch {batch} returned {n} things in another structure than
the first, which had {first}. Draws of one model must be alike to be stacked."""


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
        self._shelves: list[Shelf | _Common | None] = []

    def add(
        self, number: int, batch: Batch, session: Session, bar: ProgressBar
    ) -> None:
        """Take the draws of a batch."""
        shapes: list[torch.Size | None] = [None] * session.structure.n_leaves
        suspicious, draw = bool(batch.rows_with_nan), 0
        for leaves in session.blocks(range(self._n_draws)):
            if self._structure is None:
                first = nth(leaves, 0)
                self._begin(session.structure, first, session.output_layouts)
            assert self._structure is not None
            if session.structure.key != self._structure.key:
                n, known = len(leaves), len(self._shelves)
                raise ShapeError(
                    _OTHER.format(number=draw, batch=number, n=n, first=known)
                )
            for i, (shelf, leaf) in enumerate(zip(self._shelves, leaves, strict=True)):
                if shelf is not None:
                    shapes[i] = same_shape(leaf[0], shapes[i], draw)
                    shelf.put(number, draw, leaf)
            if suspicious:
                check_nan(leaves, batch, draw)
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
        places = [self._place(i, layouts, leaves) for i in range(len(leaves))]
        self._shelves = [
            place if own else None for own, place in zip(stacked, places, strict=True)
        ]

    def _place(
        self, number: int, layouts: tuple[Layout | None, ...], leaves: list[Any]
    ) -> "Shelf | _Common":
        """Where the draws of a leaf go."""
        if len(layouts) != len(leaves):
            return Shelf(0, self._n_draws, several=self._several)
        at = layouts[number]
        if at is None and self._several:
            return _Common(self._n_draws)
        return Shelf(0 if at is None else at.axis, self._n_draws, several=self._several)


@final
class _Common:
    """The draws of a tensor that has no rows: the same in every batch, or an error."""

    def __init__(self, n_draws: int) -> None:
        self._n_draws = n_draws
        self._draws: Tensor | None = None

    def put(self, batch: int, draw: int, block: Tensor) -> None:
        """Put down the draws of the first batch, compare those of another."""
        if self._draws is None:
            self._draws = block.new_empty((self._n_draws, *block.shape[1:]))
        known = self._draws[draw : draw + len(block)]
        if batch == 0:
            known.copy_(block)
        elif not is_close(block, known):
            raise ShapeError(NO_ROWS.format(shape=tuple(block.shape[1:])))

    def whole(self, n_draws: int) -> Tensor:
        """All of them."""
        assert self._draws is not None
        return self._draws[:n_draws]
