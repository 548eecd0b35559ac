"""The application: routes, and what they do with a request."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, TypeVar, final

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.routing import Route

from caveat._version import __version__
from caveat.errors import ParameterError
from caveat.serve.answers import QUANTILES, Arrays, RowFeatures
from caveat.serve.asking import FEWEST, Settings
from caveat.serve.batching import Batcher, QueuedJob
from caveat.serve.bridging import Bridge
from caveat.serve.describing import DESCRIPTION, described, docs_page, name_models
from caveat.serve.guarding import RequestGuard
from caveat.serve.limits import Limits
from caveat.serve.metrics import Metrics
from caveat.serve.models import ServedModel, served
from caveat.serve.protocol import HEADER, read_request, write_response
from caveat.serve.reading import read_json
from caveat.serve.refusing import (
    BUSY,
    MEDIA,
    TOO_LARGE,
    UNKNOWN,
    RefusedError,
    quoted,
    refuse,
)
from caveat.serve.rows import ROWS, read_rows, told, worst_error

Found = TypeVar("Found")
_SMALL = 2**16  # bytes: larger bodies are read beside the loop
_SECONDS = 60.0  # for a body to arrive
_GOOD = 0.02  # tolerance of a stream that asks for none
_SECURITY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
)


def app(
    models: Mapping[str, Any],
    *,
    limits: Limits | None = None,
    tokens: Collection[str] = (),
) -> FastAPI:
    """A server as an ASGI application, for a process manager of your own.

    Parameters
    ----------
    models : mapping of str to model
        By the names in addresses: ``FrameModel``, fitted estimators of Caveat, or
        :class:`NetworkModel`.
    limits : Limits, optional
        What is taken and what is refused.
    tokens : collection of str
        One of which each request must carry; empty: nobody is asked.

    Returns
    -------
    FastAPI

    Examples
    --------
    >>> import numpy as np, caveat
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = caveat.BayesianDropoutRegression(0.2).fit(X, X[:, 0])
    >>> caveat.serve.app({"linear": model}).title
    'Caveat'
    """
    if not models:
        raise ParameterError("models must hold a model. It is empty.")
    for name in models:
        if not _is_name(name):
            raise ParameterError(
                f"The name of a model must be letters, digits, '-', '_' and '.', at "
                f"most 100 of them. Got {name!r}."
            )
    own = {name: served(model) for name, model in models.items()}
    metrics, limits = Metrics(), limits or Limits()
    service = Service(own, limits, Batcher(own, limits, metrics.batch), metrics)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(service.batcher.start)
        yield
        await asyncio.to_thread(service.batcher.stop)

    web = FastAPI(
        title="Caveat",
        version=__version__,
        description=DESCRIPTION,
        lifespan=life,
        docs_url=None,  # both load scripts from elsewhere
        redoc_url=None,
        exception_handlers={
            RefusedError: _refused,
            HTTPException: _not_found,
            ClientDisconnect: _gone,
        },
    )
    web.state.batcher = service.batcher
    _add_routes(web, service)
    name_models(web.openapi(), list(own))
    web.add_middleware(
        RequestGuard, tokens=tuple(tokens), metrics=metrics, batcher=service.batcher
    )
    return web


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
        coding = _header(request, "content-encoding") or "identity"
        if coding != "identity":
            refuse(f"The body must not be compressed. Got {quoted(coding)}.", MEDIA)
        found, size, most = [], 0, self.limits.max_body
        told_size = _header(request, "content-length") or "0"
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


def _header(request: Request, name: str) -> str | None:
    """The last of this name."""
    wanted, found = name.lower().encode(), None
    for own, value in request.scope["headers"]:
        if own == wanted:
            found = value
    return None if found is None else found.decode("latin-1")


async def _read(size: int, function: Callable[..., Found], *args: Any) -> Found:
    """Beside the loop if it may take long."""
    if size <= _SMALL:
        return function(*args)
    return await asyncio.to_thread(function, *args)


# ------------------------------------------------------------ routes


def _add_routes(web: FastAPI, service: Service) -> None:
    _add_protocol(web, service)
    _add_inference(web, service)
    _add_pages(web, service)


def _add_protocol(web: FastAPI, service: Service) -> None:
    @web.get("/v2", tags=["protocol"])
    @web.get("/v2/", include_in_schema=False)
    async def server() -> Response:
        """Name, version and extensions of the server."""
        own = {"name": "caveat", "version": __version__}
        return _json(own | {"extensions": ["binary_tensor_data"]})

    @web.get("/v2/health/live", tags=["protocol"])
    async def live() -> Response:
        """Whether the process runs."""
        return _json({"live": True})

    @web.get("/v2/health/ready", tags=["protocol"], responses=described(BUSY))
    async def ready() -> Response:
        """Whether requests are taken."""
        is_ready = service.batcher.is_ready
        return _json({"ready": is_ready}, 200 if is_ready else BUSY)

    @web.get("/v2/models/{model}", tags=["protocol"], responses=described(UNKNOWN))
    @web.get("/v2/models/{model}/versions/1", include_in_schema=False)
    async def metadata(model: str) -> Response:
        """Inputs and outputs of a model."""
        return _json(_metadata(model, service.model(model)))

    @web.get(
        "/v2/models/{model}/ready",
        tags=["protocol"],
        responses=described(UNKNOWN, BUSY),
    )
    @web.get("/v2/models/{model}/versions/1/ready", include_in_schema=False)
    async def model_ready(model: str) -> Response:
        """Whether a model answers."""
        service.model(model)
        is_ready = service.batcher.is_ready
        return _json({"ready": is_ready}, 200 if is_ready else BUSY)


def _add_inference(web: FastAPI, service: Service) -> None:
    refusals = described(400, UNKNOWN, 408, TOO_LARGE, MEDIA, BUSY)

    @web.post(
        "/v2/models/{model}/infer",
        tags=["inference"],
        responses=refusals,
        openapi_extra=_example_infer(service),
    )
    @web.post("/v2/models/{model}/versions/1/infer", include_in_schema=False)
    async def infer(model: str, request: Request) -> Response:
        """Tensors in, tensors out, in JSON or with the binary extension."""
        own, body = service.model(model), await service.body(request)
        header = _header(request, HEADER)
        size = len(body)
        asked = await _read(size, read_request, body, header, own, service.limits)
        features = await _read(size, own.features, asked.inputs)
        settings = service.settings(asked.parameters, features, own)
        found = await service.answer(model, features.x, settings, asked.outputs)
        content, headers = write_response(model, asked, found, own, features.notes)
        return Response(content, headers=headers)

    @web.post(
        "/v1/models/{model}/predict",
        tags=["inference"],
        responses=refusals,
        openapi_extra=_example_rows(service),
    )
    async def predict(model: str, request: Request) -> Response:
        """Rows by column name in, answers by name out."""
        own, body = service.model(model), await service.body(request)
        plain = await _read(len(body), read_json, body)
        features, given = await _read(
            len(body), read_rows, plain, own, service.limits.max_rows
        )
        settings = service.settings(given, features, own)
        wanted = [info.name for info in own.outputs]
        found = await service.answer(model, features.x, settings, wanted)
        answer = {"model": model, "predictions": told(own, found)}
        return _json(answer | {"notes": list(features.notes)})

    @web.post(
        "/v2/models/{model}/infer_stream",
        tags=["inference"],
        responses=refusals,
        openapi_extra=_example_rows(service),
    )
    async def infer_stream(model: str, request: Request) -> Response:
        """Server-sent events after 8, 16, 32 … draws, until the error is small."""
        own, body = service.model(model), await service.body(request)
        header = _header(request, HEADER)
        features, given = await _read(
            len(body), _streamed, body, header, own, service.limits
        )
        wanted = [info.name for info in own.outputs]
        if given.pop(QUANTILES, False) is True and not own.is_classifier:
            wanted.append(QUANTILES)
        # n_draws is the most that is drawn here, and may come with a tolerance.
        most, tolerance = given.pop("n_draws", None), given.pop("tolerance", None)
        limit = Settings.read({"n_draws": most}, service.limits).n_draws
        good = Settings.read({"tolerance": tolerance}, service.limits).tolerance
        base = Settings.read(given, service.limits)
        goal = base.checked(len(features.x), 2, service.limits)
        last = min(limit or service.limits.max_draws, goal.most)
        first_step = replace(goal, n_draws=min(FEWEST, last), budget=None)
        first = await service.answer(model, features.x, first_step, wanted)
        stream = _Stream(service, model, features, wanted, first_step, good or _GOOD)
        events = stream.events(first, last, base.budget)
        return StreamingResponse(events, media_type="text/event-stream")

    _shorten(web, "/v2/models/{model}/infer_stream", infer_stream)
    _shorten(web, "/v1/models/{model}/predict", predict)
    _shorten(web, "/v2/models/{model}/infer", infer)


def _shorten(web: FastAPI, path: str, function: Any) -> None:
    """The same route once more, before the described one, without FastAPI's parsing.

    That takes longer than a small model, and there is nothing in it for a raw body.
    """

    async def endpoint(request: Request) -> Response:
        found: Response = await function(request.path_params["model"], request)
        return found

    endpoint.__dict__["route"] = path  # for the metrics
    web.router.routes.insert(0, Route(path, endpoint, methods=["POST"]))


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


@dataclass(frozen=True)
class _Stream:
    """The steps of one stream."""

    service: Service
    name: str
    features: RowFeatures
    wanted: list[str]
    settings: Settings
    good: float

    async def events(
        self, found: Arrays, last: int, budget: float | None
    ) -> AsyncIterator[str]:
        """One for each step; the last says that it is the last, and why."""
        model, start = self.service.models[self.name], time.monotonic()
        number = self.settings.n_draws or FEWEST
        while True:
            error, before = worst_error(model, found), time.monotonic() - start
            reason = None
            if error <= self.good:
                reason = "good enough"
            elif number >= last:
                reason = "draws"
            elif budget is not None and before > 0.5 * budget:
                reason = "budget"
            own: dict[str, Any] = {
                "draws": number,
                "error": error,
                "tolerance": self.good,
            }
            own |= {"done": reason is not None, "reason": reason}
            own |= {"notes": list(self.features.notes)}
            yield _event(own | {"predictions": told(model, found)})
            if reason is not None:
                return
            number = min(2 * number, last)
            settings = replace(self.settings, n_draws=number)
            try:
                found = await self.service.answer(
                    self.name, self.features.x, settings, self.wanted
                )
            except RefusedError as refusal:
                yield _event({"error": str(refusal), "done": True}, "error")
                return


def _event(content: dict[str, Any], kind: str = "estimate") -> str:
    return f"event: {kind}\ndata: {json.dumps(content, allow_nan=False)}\n\n"


def _add_pages(web: FastAPI, service: Service) -> None:
    page = files("caveat.serve").joinpath("page.html").read_text(encoding="utf-8")
    headers = {"content-security-policy": _SECURITY}

    @web.get("/", include_in_schema=False)
    async def root() -> Response:
        return HTMLResponse(page, headers=headers)

    @web.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(docs_page(web.openapi()), headers=headers)

    @web.get("/metrics", tags=["operation"])
    async def metrics() -> Response:
        """Counts and times for Prometheus."""
        text = service.metrics.text(service.batcher.waiting)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    @web.get("/v1/models", tags=["inference"])
    async def models() -> Response:
        """All models, with what a person fills in."""
        own = [_told_model(name, model) for name, model in service.models.items()]
        return _json({"models": own, "limits": service.limits.plain})


# ------------------------------------------------------------ answers


def _metadata(name: str, model: ServedModel) -> dict[str, Any]:
    return {
        "name": name,
        "versions": ["1"],
        "platform": "caveat",
        "inputs": [info.plain for info in model.inputs],
        "outputs": [info.plain for info in model.outputs],
        "parameters": {
            "kind": model.kind,
            "classes": list(model.classes),
            "n_draws": model.n_draws,
            "defers": model.defers,
        },
    }


def _told_model(name: str, model: ServedModel) -> dict[str, Any]:
    own = {"name": name, "kind": model.kind, "classes": list(model.classes)}
    return own | {
        "n_draws": model.n_draws,
        "columns": model.form,
        "example": model.example,
        "outputs": [info.name for info in model.outputs],
    }


def _example_rows(service: Service) -> dict[str, Any]:
    model = next(iter(service.models.values()))
    return _request_example({"rows": [model.example], "n_draws": 64, "seed": 1})


def _example_infer(service: Service) -> dict[str, Any]:
    model = next(iter(service.models.values()))
    row = model.example
    inputs = []
    for info in model.inputs:
        shape = [1, *info.shape[1:]]
        data = [row[info.name]] if isinstance(row, dict) else [row]
        own = {"name": info.name, "shape": shape, "datatype": info.datatype}
        inputs.append(own | {"data": data})
    return _request_example({"inputs": inputs, "parameters": {"n_draws": 64}})


def _request_example(example: dict[str, Any]) -> dict[str, Any]:
    content = {"schema": {"type": "object"}, "example": example}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def _json(content: Any, status: int = 200) -> Response:
    body = json.dumps(content, allow_nan=False)
    return Response(body, status, media_type="application/json")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    found = _json({"error": str(error)}, error.status)
    if error.status == BUSY:
        found.headers["retry-after"] = str(request.app.state.batcher.retry_after())
    return found


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    found = _json({"error": str(error.detail)}, error.status_code)
    found.headers.update(error.headers or {})
    return found


async def _gone(request: Request, error: Exception) -> Response:
    return _json({"error": "The body did not arrive."}, 400)


def _is_name(name: Any) -> bool:
    if not isinstance(name, str) or not 1 <= len(name) <= 100:
        return False
    return name.isascii() and all(c.isalnum() or c in "-_." for c in name)
