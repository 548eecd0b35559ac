"""A server that stops in two steps, so that nobody who has knocked is left outside."""

import time
from collections.abc import Callable
from types import FrameType
from typing import final

import uvicorn

_SECONDS = 0.5
_TURNS = 5  # of the loop's clock, which is late where the machine is busy


@final
class DrainingServer(uvicorn.Server):
    """uvicorn closes connections whose request it has not read yet; this one waits.

    The first signal says that the server is no longer ready and has connections closed
    after their answer; those that are open or in the queue of the system are still
    answered. After half a second it listens no more, finishes, and ends. A second
    signal ends it at once, as uvicorn does.

    Parameters
    ----------
    setup : uvicorn.Config
    drain : callable
        Called at the first signal.
    """

    def __init__(self, setup: uvicorn.Config, drain: Callable[[], None]) -> None:
        super().__init__(setup)
        self._drain = drain
        self._since: float | None = None
        self._turns = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Of uvicorn: a signal came."""
        if self._since is not None:
            super().handle_exit(sig, frame)
            return
        self._since = time.monotonic()
        self._drain()

    async def on_tick(self, counter: int) -> bool:
        """Of uvicorn: some ten times a second; True ends the loop."""
        if self._since is not None:
            self._turns += 1
            waited = time.monotonic() - self._since
            if waited >= _SECONDS and self._turns >= _TURNS:
                self.should_exit = True
        return await super().on_tick(counter)
