"""What a workload costs at the very least on this machine, timed in the same run.

A floor is a yardstick rather than a proof: work before the first site is done once by
an engine that reuses it, so a floor of one pass per draw can be passed by a little.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import torch

from benchmarks.tasks import Case


def deterministic_pass(case: Case) -> Callable[[], object]:
    """Return a function that runs the model once as it is, without gradients."""
    model, args, kwargs = case

    def run() -> object:
        with torch.no_grad():
            return model(*args, **kwargs)

    return run


class Floor(Protocol):
    """The unavoidable part of a workload."""

    @property
    def description(self) -> str:
        """Say what the floor consists of."""

    def repeats(self, n_draws: int) -> int:
        """How often the timed piece is needed for ``n_draws`` draws."""

    def piece(self, case: Case) -> Callable[[], object] | None:
        """Return what is timed; ``None`` is the deterministic pass, timed anyway."""


@dataclass(frozen=True)
class OnePass:
    """All draws share everything but the head: one deterministic pass."""

    description: str = "one deterministic pass"

    def repeats(self, n_draws: int) -> int:
        """Need the pass once."""
        return 1

    def piece(self, case: Case) -> None:
        """Leave it at the pass."""


@dataclass(frozen=True)
class PassPerDraw:
    """Nothing is shared: one deterministic pass per draw, in the faster layout."""

    channels_last: bool = False

    @property
    def description(self) -> str:
        """Name the layout."""
        layout = ", channels_last" if self.channels_last else ""
        return f"T deterministic passes{layout}"

    def repeats(self, n_draws: int) -> int:
        """Need the pass for every draw."""
        return n_draws

    def piece(self, case: Case) -> Callable[[], object] | None:
        """Return the pass of a model that is converted once, beforehand."""
        if not self.channels_last:
            return None
        layout = torch.channels_last
        # mypy sees only the dtype and device overloads of Module.to.
        model = case.model.to(memory_format=layout)  # type: ignore[call-overload]
        args = tuple(value.to(memory_format=layout) for value in case.args)
        return deterministic_pass(Case(model, args, case.kwargs))


@dataclass(frozen=True)
class Matmuls:
    """The matrix products of one draw, with the units that are kept on average."""

    rows: int
    widths: tuple[int, ...]
    keep_prob: float = 1.0
    """Share of the hidden units left when dropped ones are sliced out."""

    @property
    def description(self) -> str:
        """Name the sizes."""
        return f"T x matmuls {self.rows} x {' x '.join(map(str, self._kept()))}"

    def repeats(self, n_draws: int) -> int:
        """Need the products for every draw."""
        return n_draws

    def piece(self, case: Case) -> Callable[[], object]:
        """Return the products, written into memory that exists."""
        sizes = self._kept()
        factors = [torch.rand(shape) for shape in pairwise(sizes)]
        blocks = [torch.rand(self.rows, size) for size in sizes]

        def run() -> None:
            for block, factor, result in zip(blocks, factors, blocks[1:], strict=False):
                torch.mm(block, factor, out=result)

        return run

    def _kept(self) -> tuple[int, ...]:
        first, *hidden, last = self.widths
        return first, *(round(size * self.keep_prob) for size in hidden), last
