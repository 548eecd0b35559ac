"""Results of the computing thread on their way into the event loop, many at a time."""

import asyncio
from collections import deque
from concurrent.futures import Future
from typing import Any, final


@final
class Bridge:
    """Wakes the loop once for all results of a batch; asyncio itself does for each."""

    def __init__(self) -> None:
        self._done: deque[tuple[Future[Any], asyncio.Future[Any]]] = deque()
        self._is_called = False

    async def wait(self, future: "Future[Any]") -> Any:
        """The result of a future that another thread fulfils."""
        loop = asyncio.get_running_loop()
        own: asyncio.Future[Any] = loop.create_future()

        def finished(done: "Future[Any]") -> None:
            self._done.append((done, own))
            if not self._is_called:
                self._is_called = True
                loop.call_soon_threadsafe(self._deliver)

        future.add_done_callback(finished)
        return await own

    def _deliver(self) -> None:
        # First, so that what is appended from now on calls again.
        self._is_called = False
        while self._done:
            done, own = self._done.popleft()
            if own.done():  # given up meanwhile
                continue
            error = done.exception()
            if error is None:
                own.set_result(done.result())
            else:
                own.set_exception(error)
