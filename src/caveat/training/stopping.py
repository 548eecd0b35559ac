"""Early stopping: keep the weights that were best on held-out rows."""

from collections.abc import Sequence

import torch
from torch import Tensor

from caveat import _validation as validation
from caveat.errors import ParameterError
from caveat.training.members import Rows
from caveat.training.stack import Stack, layers


class Watch:
    """Watches the loss on validation rows, with the noise switched off.

    Parameters
    ----------
    rows : sequence of Rows
        One set per member, in their order.
    every : int
        Steps between two looks.
    patience : int
        Looks without a new best after which a member is given up.

    Notes
    -----
    A member is also looked at after its last step. One that is given up keeps the
    weights of its best look, whether or not it is computed until all others are given
    up, too. The rows must not be those the model is tested on.

    Attributes
    ----------
    rows, every, patience
        As given.
    """

    def __init__(self, rows: Sequence[Rows], *, every: int, patience: int) -> None:
        if not rows:
            raise ParameterError("rows must hold one set per member. Got none.")
        self.every = validation.positive_int("every", every)
        self.rows = list(rows)
        self.patience = validation.positive_int("patience", patience)
        self._least = torch.full((len(rows),), torch.inf)
        self._misses = torch.zeros(len(rows), dtype=torch.int64)
        self._when = torch.zeros(len(rows), dtype=torch.int64)
        self._best: Tensor | None = None

    def afresh(self) -> "Watch":
        """The same, before its first look: every training has one of its own."""
        return Watch(self.rows, every=self.every, patience=self.patience)

    def is_due(self, step: int) -> bool:
        """Whether it is time to look."""
        return step % self.every == 0

    def look(self, stack: Stack, parameters: Tensor, step: int) -> None:
        """Compare with the best so far."""
        if self._best is None:
            self._best = parameters.clone()
        loss = torch.stack(
            [self._loss(stack, own[None], i) for i, own in enumerate(parameters)]
        )
        better = (loss < self._least) & (self._misses < self.patience)
        self._least = torch.where(better, loss, self._least)
        self._when = torch.where(better, step, self._when)
        self._best = torch.where(better[:, None], parameters, self._best)
        self._misses = torch.where(better, 0, self._misses + 1)

    def has_given_up(self) -> bool:
        """Whether no member has improved for so long that none is expected to."""
        return bool((self._misses >= self.patience).all())

    def best(self, state: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
        """The best weights, and after how many steps they were reached."""
        if self._best is None:
            return state, steps
        return self._best, self._when

    def _loss(self, stack: Stack, own: Tensor, index: int) -> Tensor:
        rows = self.rows[index]
        outputs = stack.outputs(layers(own, stack.architecture), rows.x[None])
        return stack.objective.loss(outputs, rows.y[None]).mean()
