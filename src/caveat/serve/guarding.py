"""Around all routes: tokens, measured times, headers, and no error unspoken."""

import json
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any, NamedTuple, final

from starlette.requests import Request
from starlette.responses import Response

from caveat.serve.batching import Batcher
from caveat.serve.metrics import Metrics
from caveat.serve.tokens import is_allowed

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Health is for machines that have no token, and the page holds nothing of the models.
OPEN = frozenset({"/", "/v2/health/live", "/v2/health/ready"})
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


class Shortcut(NamedTuple):
    """What answers POST at one address.

    Attributes
    ----------
    route : str
        As metrics call it.
    answer : callable
    """

    route: str
    answer: Callable[[Request], Awaitable[Response]]


@final
class RequestGuard:
    """Asks for tokens, and counts what was answered.

    Parameters
    ----------
    app : ASGI application
    tokens : collection of str
        Empty: everybody is let in.
    metrics : Metrics
    batcher : Batcher
        Which says whether the server is about to stop.
    shortcuts : mapping of str to Shortcut
        Addresses that are answered without the application.
    """

    def __init__(
        self,
        app: App,
        tokens: Collection[str],
        metrics: Metrics,
        batcher: Batcher,
        shortcuts: Mapping[str, Shortcut],
    ) -> None:
        self._app, self._tokens, self._metrics = app, tokens, metrics
        self._batcher, self._shortcuts = batcher, shortcuts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.monotonic(), 0
        shortcut = None
        if scope["method"] == "POST":
            shortcut = self._shortcuts.get(scope["path"])

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
                if self._batcher.is_draining:
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        try:
            if not self._is_open(scope):
                await _unauthorised(watched)
            elif shortcut is None:
                await self._app(scope, receive, watched)
            else:
                answer = await shortcut.answer(Request(scope, receive))
                await answer(scope, receive, watched)
        except Exception:  # the last door: an answer, and a line in the log
            logging.getLogger("caveat.serve").exception("a request failed")
            if not status:
                await _say(watched, 500, "The server failed.")
        finally:
            route = getattr(scope.get("route"), "path", "other")
            route = route if shortcut is None else shortcut.route
            self._metrics.request(route, status, time.monotonic() - start)

    def _is_open(self, scope: Scope) -> bool:
        if not self._tokens or scope["path"] in OPEN:
            return True
        given = [v for name, v in scope["headers"] if name == b"authorization"]
        header = given[0].decode("latin-1") if len(given) == 1 else None
        return is_allowed(header, self._tokens)


async def _unauthorised(send: Send) -> None:
    more = [(b"www-authenticate", b"Bearer")]
    await _say(send, 401, "A token is needed: Authorization: Bearer …", more)


async def _say(
    send: Send,
    status: int,
    error: str,
    headers: list[tuple[bytes, bytes]] | None = None,
) -> None:
    body = json.dumps({"error": error}).encode()
    own = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *(headers or ()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": own})
    await send({"type": "http.response.body", "body": body})
