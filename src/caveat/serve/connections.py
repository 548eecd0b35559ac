"""Connections of uvicorn that write once for an answer, and do not wait for ever."""

import asyncio
from typing import Any, final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

PATIENCE = 20.0  # seconds without any progress
_MOST = 1 << 16  # bytes that are held back


@final
class GatheredWrites:
    """A transport that sends what one turn of the loop has written in one piece.

    uvicorn writes the head of an answer and its body apart; of a small model the two
    calls of the system are a tenth of all that a request costs.

    Parameters
    ----------
    transport : asyncio.Transport
        That is written to.
    loop : asyncio.AbstractEventLoop
        Whose turns count.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Send it at the end of this turn, or at once if there is much."""
        if not data:
            return
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._size += len(data)
        if self._size > _MOST:
            self._flush()

    def close(self) -> None:
        """Send what is held, then close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held:
            held, self._held, self._size = self._held, [], 0
            self._transport.write(b"".join(held))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class PatientConnection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection that ends if nothing moves on it any more.

    uvicorn waits for ever for the head of a request that comes byte by byte, and for
    a client that does not read its answer, also when it is told to stop. While a
    request is being answered, or waits for its turn, nothing is timed here.
    """

    _seen: tuple[Any, int] = (None, 0)
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Of asyncio."""
        super().connection_made(GatheredWrites(transport, self.loop))
        self._seen = (None, 0)
        self._timer = self.loop.call_later(PATIENCE, self._look)

    def connection_lost(self, error: Exception | None) -> None:
        """Of asyncio."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(error)

    def _look(self) -> None:
        """End it if all is as it was the last time, and it is the client's turn."""
        cycle, unread = self.cycle, self.transport.get_write_buffer_size()
        same = cycle is self._seen[0]
        is_deaf = same and 0 < unread == self._seen[1]
        is_mute = same and not unread and (cycle is None or cycle.response_complete)
        if is_deaf or is_mute:
            self.transport.abort()
            return
        self._seen = (cycle, unread)
        self._timer = self.loop.call_later(PATIENCE, self._look)
