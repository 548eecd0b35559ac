"""The routes that answer: tensors, rows by name, and streams."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import NoneType
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from starlette.responses import StreamingResponse

from caveat.serve.answers import QUANTILES, RowFeatures
from caveat.serve.asking import FEWEST, Settings
from caveat.serve.limits import Limits
from caveat.serve.models import ServedModel
from caveat.serve.protocol import HEADER, read_request, write_response
from caveat.serve.reading import read_json
from caveat.serve.refusing import quoted, refuse
from caveat.serve.rows import ROWS, read_rows, told
from caveat.serve.service import Service, as_json, header, read_beside
from caveat.serve.streaming import EventStream

Answering = Callable[[Service, str, Request], Awaitable[Response]]
_GOOD = 0.02  # tolerance of a stream that asks for none


async def infer(service: Service, model: str, request: Request) -> Response:
    """Tensors in, tensors out, in JSON or with the binary extension."""
    own, body = service.model(model), await service.body(request)
    length = header(request, HEADER)
    size = len(body)
    asked = await read_beside(size, read_request, body, length, own, service.limits)
    features = await read_beside(size, own.features, asked.inputs)
    settings = service.settings(asked.parameters, features, own)
    found = await service.answer(model, features.x, settings, asked.outputs)
    content, headers = write_response(model, asked, found, own, features.notes)
    return Response(content, headers=headers)


async def predict(service: Service, model: str, request: Request) -> Response:
    """Rows by column name in, answers by name out."""
    own, body = service.model(model), await service.body(request)
    size, most = len(body), service.limits.max_rows
    plain = await read_beside(size, read_json, body)
    features, given = await read_beside(size, read_rows, plain, own, most)
    settings = service.settings(given, features, own)
    wanted = [info.name for info in own.outputs]
    found = await service.answer(model, features.x, settings, wanted)
    answer = {"model": model, "predictions": told(own, found)}
    return as_json(answer | {"notes": list(features.notes)})


async def infer_stream(service: Service, model: str, request: Request) -> Response:
    """Server-sent events after 8, 16, 32 … draws, until the error is small."""
    own, body = service.model(model), await service.body(request)
    length, limits = header(request, HEADER), service.limits
    features, given = await read_beside(len(body), _streamed, body, length, own, limits)
    wanted = [info.name for info in own.outputs]
    quantiles = given.pop(QUANTILES, None)
    if type(quantiles) not in (bool, NoneType):
        refuse(f"quantiles must be true or false. Got {quoted(quantiles)}.")
    if quantiles and not own.is_classifier:  # which has bars, and none of these
        wanted.append(QUANTILES)
    # n_draws is the most that is drawn here, and may come with a tolerance.
    most, tolerance = given.pop("n_draws", None), given.pop("tolerance", None)
    limit = Settings.read({"n_draws": most}, limits).n_draws
    good = Settings.read({"tolerance": tolerance}, limits).tolerance
    base = Settings.read(given, limits)
    goal = base.checked(len(features.x), 2, limits)
    last = min(limit or limits.max_draws, goal.most)
    first_step = replace(goal, n_draws=min(FEWEST, last), budget=None)
    first = await service.answer(model, features.x, first_step, wanted)
    stream = EventStream(service, model, features, wanted, first_step, good or _GOOD)
    is_told = limit is not None or tolerance is not None
    budget = None if is_told and "budget_ms" not in given else base.budget
    events = stream.events(first, last, budget)
    return StreamingResponse(events, media_type="text/event-stream")


def _streamed(
    body: bytes, header: str | None, model: ServedModel, limits: Limits
) -> tuple[RowFeatures, dict[str, Any]]:
    """Rows by name, or tensors of the protocol."""
    if header is None:
        plain = read_json(body)
        if ROWS in plain:
            return read_rows(plain, model, limits.max_rows)
    asked = read_request(body, header, model, limits)
    return model.features(asked.inputs), asked.parameters


ROUTES: dict[str, Answering] = {
    "/v2/models/{model}/infer": infer,
    "/v1/models/{model}/predict": predict,
    "/v2/models/{model}/infer_stream": infer_stream,
}
