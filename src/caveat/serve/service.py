"""What all routes share: models, the queue, and how a body is read."""

import asyncio
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

from fastapi import Request
from fastapi.responses import Response

from caveat.serve.answers import Arrays, RowFeatures
from caveat.serve.asking import Settings
from caveat.serve.batching import Batcher, QueuedJob
from caveat.serve.bridging import Bridge
from caveat.serve.limits import Limits
from caveat.serve.metrics import Metrics
from caveat.serve.models import ServedModel
from caveat.serve.refusing import MEDIA, TOO_LARGE, UNKNOWN, quoted, refuse

Found = TypeVar("Found")
_SMALL = 2**16  # bytes: larger bodies are read beside the loop
_SECONDS = 60.0  # for a body to arrive


@final
@dataclass(frozen=True)
class Service:
    """What all routes share.

    Attributes
    ----------
    models : dict of str to ServedModel
    limits : Limits
    batcher : Batcher
    metrics : Metrics
    bridge : Bridge
        From the batcher's thread.
    """

    models: dict[str, ServedModel]
    limits: Limits
    batcher: Batcher
    metrics: Metrics
    bridge: Bridge = field(default_factory=Bridge)

    def model(self, name: str) -> ServedModel:
        """The model of an address."""
        found = self.models.get(name)
        if found is None:
            refuse(f"There is no model {quoted(name)}.", UNKNOWN)
        return found

    async def body(self, request: Request) -> bytes:
        """All of it, if it is not too large."""
        if request.scope["query_string"]:
            refuse("Parameters stand in the body. Got some behind a '?'.")
        coding = header(request, "content-encoding") or "identity"
        if coding != "identity":
            refuse(f"The body must not be compressed. Got {quoted(coding)}.", MEDIA)
        found, size, most = [], 0, self.limits.max_body
        told_size = header(request, "content-length") or "0"
        if told_size.isdigit() and int(told_size[:20]) > most:
            refuse(f"The body must have at most {most} bytes.", TOO_LARGE)
        try:
            async with asyncio.timeout(_SECONDS):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > most:
                        refuse(f"The body must have at most {most} bytes.", TOO_LARGE)
                    found.append(chunk)
        except TimeoutError:
            refuse(f"The body must arrive within {_SECONDS:g} seconds.", 408)
        return b"".join(found)

    async def answer(
        self, name: str, x: Any, settings: Settings, wanted: Collection[str]
    ) -> Arrays:
        """Through the queue."""
        job = QueuedJob(name, x, settings, tuple(wanted))
        found: Arrays = await self.bridge.wait(self.batcher.submit(job))
        return found

    def settings(
        self, given: dict[str, Any], features: RowFeatures, model: ServedModel
    ) -> Settings:
        """Of a request, checked for its rows."""
        asked = Settings.read(given, self.limits)
        return asked.checked(len(features.x), model.n_draws, self.limits)


def header(request: Request, name: str) -> str | None:
    """The last of this name."""
    wanted, found = name.lower().encode(), None
    for own, value in request.scope["headers"]:
        if own == wanted:
            found = value
    return None if found is None else found.decode("latin-1")


async def read_beside(size: int, function: Callable[..., Found], *args: Any) -> Found:
    """Beside the loop if it may take long."""
    if size <= _SMALL:
        return function(*args)
    return await asyncio.to_thread(function, *args)


def as_json(content: Any, status: int = 200) -> Response:
    """An answer of JSON."""
    body = json.dumps(content, allow_nan=False)
    return Response(body, status, media_type="application/json")
