"""What a request asks for beside its rows: draws, seed, level, budget."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, final

from caveat.serve.limits import Limits
from caveat.serve.refusing import quoted, refuse

FEWEST = 8  # draws in a stream or with a budget
_FIRST = 32  # under a tolerance: an error that few draws tell is often too small
NAMES = ("n_draws", "tolerance", "seed", "level", "budget_ms")


@final
@dataclass(frozen=True)
class Settings:
    """Of one request. Requests with equal ones are computed together.

    Attributes
    ----------
    n_draws : int or None
        None: as many as the model takes. With a budget: at most so many.
    tolerance : float or None
        Draw until the Monte Carlo error of each row is below this part of its spread.
    seed : int
    level : float
        Of intervals.
    budget : float or None
        Seconds.
    most : int
        Draws that a row may have.
    """

    n_draws: int | None = None
    tolerance: float | None = None
    seed: int = 0
    level: float = 0.9
    budget: float | None = None
    most: int = 10_000

    @classmethod
    def read(cls, given: Mapping[str, Any], limits: Limits) -> Self:
        """Checked, from the parameters of a request.

        Parameters
        ----------
        given : mapping
            By the names of ``NAMES``; null is as if it were not there.
        limits : Limits
            Of the server.

        Returns
        -------
        Settings
        """
        for name in given:
            if name not in NAMES:
                refuse(
                    f"There is no parameter {quoted(name)}. Known: {', '.join(NAMES)}."
                )
        own = {name: value for name, value in given.items() if value is not None}
        most = limits.max_draws
        n_draws = _whole(own, "n_draws", 2, most)
        tolerance = _number(own, "tolerance", 0.0, 10.0)
        if n_draws is not None and tolerance is not None:
            refuse("Give n_draws or tolerance, not both.")
        level = _number(own, "level", 0.0, 1.0)
        milliseconds = _number(own, "budget_ms", 0.0, 600_000.0)
        budget = None if milliseconds is None else milliseconds / 1e3
        if budget is None and n_draws is None and tolerance is None:
            budget = limits.budget
        return cls(
            n_draws,
            tolerance,
            _whole(own, "seed", 0, 2**32 - 1) or 0,
            0.9 if level is None else level,
            budget,
            most,
        )

    def checked(self, n_rows: int, default: int, limits: Limits) -> Self:
        """With the number of draws that these rows may have.

        Parameters
        ----------
        n_rows : int
            Of the request.
        default : int
            Draws that the model takes if not told otherwise.
        limits : Limits
            Of the server.

        Returns
        -------
        Settings
        """
        if not 1 <= n_rows <= limits.max_rows:
            refuse(f"A request must have 1 to {limits.max_rows} rows. Got {n_rows}.")
        most = min(self.most, max(2, limits.max_work // n_rows))
        if self.tolerance is not None or self.budget is not None:
            return replace(self, most=most)
        asked = default if self.n_draws is None else self.n_draws
        if asked > most:
            refuse(
                f"{n_rows} rows with {asked} draws each are more than this server "
                f"computes at once (rows times draws at most {limits.max_work}, draws "
                f"at most {limits.max_draws}). Ask for fewer."
            )
        return self if asked == self.n_draws else replace(self, n_draws=asked)

    def ladder(self) -> list[int]:
        """Numbers of draws to try under a tolerance: twice as many each time."""
        found, number = [], _FIRST
        while number < self.most:
            found.append(number)
            number *= 2
        return [*found, self.most]


def _number(
    given: Mapping[str, Any], name: str, above: float, most: float
) -> float | None:
    value = given.get(name)
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name == "level" and not (is_number and above < value < most):
        refuse(
            f"level must be a number above 0 and below 1, such as 0.9. "
            f"Got {quoted(value)}."
        )
    if not is_number or not above < value <= most or not math.isfinite(value):
        refuse(
            f"{name} must be a number above {above:g}, at most {most:g}. "
            f"Got {quoted(value)}."
        )
    return float(value)


def _whole(given: Mapping[str, Any], name: str, least: int, most: int) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # clients that have one kind of number only
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not least <= value <= most:
        refuse(
            f"{name} must be a whole number from {least} to {most}. "
            f"Got {quoted(value)}."
        )
    return int(value)
