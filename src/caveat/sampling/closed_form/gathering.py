"""A batch under way: its draws go to an accumulator, and are then let go."""

from collections.abc import Iterator

from torch import Tensor

from caveat.sampling.closed_form.readings import FoundMoments, Reading
from caveat.sampling.jobs import Accumulator, Job


class Gathering:
    """Gathers the draws of one batch.

    Parameters
    ----------
    reading : Reading
        Where the draws come from.
    accumulator : Accumulator
        What takes them in.
    precision : Tensor, optional
        tau of a regression.

    Attributes
    ----------
    found : FoundMoments or None
        Closed forms, if there are any; known after :meth:`finish`.
    """

    def __init__(
        self,
        reading: Reading,
        accumulator: Accumulator,
        precision: Tensor | None = None,
    ) -> None:
        self.accumulator = accumulator
        self.found: FoundMoments | None = None
        self._reading: Reading | None = reading
        self._precision = precision

    def take(self, numbers: range) -> Iterator[int]:
        """Take in these draws, and say of each block how many it held."""
        assert self._reading is not None
        for block in Job.blocks(self._reading.draws(numbers)):
            self.accumulator.add(block)
            yield len(block)

    def relative_error(self) -> float:
        """The worst Monte Carlo error so far, relative to the predictive spread."""
        own = None
        if self._reading is not None and self._precision is not None:
            own = self._reading.relative_error(self._precision)
        return self.accumulator.relative_error() if own is None else own

    def finish(self) -> None:
        """Let go of all that drawing needs."""
        if self._reading is not None:
            self.found = self._reading.moments()
            self._reading = None
