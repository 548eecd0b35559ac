"""How long an answer takes: learned from those given, to keep a budget."""

import threading
from typing import final

from caveat.serve.asking import FEWEST

_SAFE = 0.7  # of the time left that is planned with
_SLOW, _FAST = 0.1, 0.5  # how far an estimate moves down, and up
_OVERHEAD = 0.003  # seconds: reading, and writing the answer


@final
class CostModel:
    """Seconds of a batch as a line: a fixed part, and one for each row and draw.

    Estimates go up fast and down slowly, so that a budget is rather kept than used up.
    """

    def __init__(self) -> None:
        self._fixed: float | None = None
        self._each: float | None = None
        self._lock = threading.Lock()

    @property
    def is_known(self) -> bool:
        """Whether anything was learned."""
        return self._fixed is not None and self._each is not None

    def start(self, small: tuple[int, float], large: tuple[int, float]) -> None:
        """From two measurements: rows times draws, and seconds."""
        each = (large[1] - small[1]) / (large[0] - small[0])
        self._each = max(each, 0.01 * large[1] / large[0])
        self._fixed = max(small[1] - self._each * small[0], 1e-4)

    def learn(self, rows: int, draws: int, seconds: float) -> None:
        """Take in what a batch took."""
        work = rows * draws
        with self._lock:
            if self._fixed is None or self._each is None:
                return
            expected = self._fixed + self._each * work
            step = _FAST if seconds > expected else _SLOW
            ratio = 1.0 + step * (seconds / expected - 1.0)
            # What dominates is what was seen.
            share = self._each * work / expected
            self._each *= ratio**share
            self._fixed *= ratio ** (1.0 - share)

    def seconds(self, rows: int, draws: int) -> float:
        """What a batch will take."""
        return (self._fixed or 0.0) + (self._each or 0.0) * rows * draws

    def draws(self, rows: int, seconds: float, most: int) -> int:
        """How many draws for each row fit into the time that is left.

        Parameters
        ----------
        rows : int
            Of the batch.
        seconds : float
            Left of the budget.
        most : int
            That are allowed.

        Returns
        -------
        int
            At least 8, even if they take longer: an answer needs some. Numbers below
            64 are powers of two, larger ones multiples of 64, in which draws are
            balanced.
        """
        if not self.is_known:
            return min(most, 64)
        left = _SAFE * (seconds - _OVERHEAD) - (self._fixed or 0.0)
        number = int(left / ((self._each or 1e-9) * rows)) if left > 0.0 else 0
        number = max(FEWEST, min(number, most))
        if number < 64:
            return min(most, 1 << (number.bit_length() - 1))
        return number - number % 64
