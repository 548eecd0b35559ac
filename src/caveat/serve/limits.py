"""What a server takes, and what it refuses."""

from dataclasses import dataclass, fields
from typing import final

from caveat import _validation as check
from caveat.errors import ParameterError


@final
@dataclass(frozen=True)
class Limits:
    """Bounds of requests, of the queue and of a batch.

    Attributes
    ----------
    max_rows : int
        Rows of a request.
    max_draws : int
        Draws for each row.
    max_work : int
        Rows times draws of a request: nobody holds the others up for minutes.
    max_body : int
        Bytes of a request.
    max_waiting : int
        Requests in the queue; one more is answered 503.
    max_wait : float
        Seconds in the queue, after which a request is answered 503.
    batch_rows : int
        Rows that are computed together.
    window : float
        Seconds for which the first request of a batch waits for others.
    budget : float or None
        Seconds for an answer that asks for no number of draws; None: no budget.
    """

    max_rows: int = 10_000
    max_draws: int = 10_000
    max_work: int = 20_000_000
    max_body: int = 32 * 2**20
    max_waiting: int = 256
    max_wait: float = 30.0
    batch_rows: int = 1024
    window: float = 0.002
    budget: float | None = None

    def __post_init__(self) -> None:
        whole = ("max_rows", "max_work", "max_body", "max_waiting", "batch_rows")
        for name in whole:
            check.positive_int(name, getattr(self, name))
        check.several("max_draws", self.max_draws)
        check.positive("max_wait", self.max_wait)
        if self.budget is not None:
            check.positive("budget", self.budget)
        if not 0.0 <= self.window <= 1.0:
            raise ParameterError(
                f"window must lie between 0 and 1 second. Got {self.window}."
            )

    @property
    def plain(self) -> dict[str, float | None]:
        """By name, for people."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
