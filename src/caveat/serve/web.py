"""The application: its routes, and what they do with errors."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from caveat._version import __version__
from caveat.errors import ParameterError
from caveat.serve.batching import Batcher
from caveat.serve.describing import DESCRIPTION, described, docs_page, name_models
from caveat.serve.guarding import RequestGuard, Shortcut
from caveat.serve.heap import settled_heap
from caveat.serve.inferring import ROUTES, Answering, infer
from caveat.serve.kinds import served
from caveat.serve.limits import Limits
from caveat.serve.metrics import Metrics
from caveat.serve.models import ServedModel
from caveat.serve.refusing import BUSY, MEDIA, TOO_LARGE, UNKNOWN, RefusedError
from caveat.serve.schemas import (
    answer_contents,
    infer_body,
    rows_body,
    stream_body,
)
from caveat.serve.service import Service, as_json

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
        with settled_heap():
            yield
        await asyncio.to_thread(service.batcher.stop)

    web = FastAPI(
        title="Caveat",
        version=__version__,
        description=DESCRIPTION,
        lifespan=life,
        docs_url=None,  # both load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # to an address that a header of the client names
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
        RequestGuard,
        tokens=tuple(tokens),
        metrics=metrics,
        batcher=service.batcher,
        shortcuts=_shortcuts(service),
    )
    return web


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
        return as_json(own | {"extensions": ["binary_tensor_data"]})

    @web.get("/v2/health/live", tags=["protocol"])
    @web.head("/v2/health/live", include_in_schema=False)
    async def live() -> Response:
        """Whether the process runs."""
        return as_json({"live": True})

    @web.get("/v2/health/ready", tags=["protocol"], responses=described(BUSY))
    @web.head("/v2/health/ready", include_in_schema=False)
    async def ready() -> Response:
        """Whether requests are taken."""
        is_ready = service.batcher.is_ready
        return as_json({"ready": is_ready}, 200 if is_ready else BUSY)

    @web.get("/v2/models/{model}", tags=["protocol"], responses=described(UNKNOWN))
    @web.get("/v2/models/{model}/versions/1", include_in_schema=False)
    async def metadata(model: str) -> Response:
        """Inputs and outputs of a model."""
        return as_json(_metadata(model, service.model(model)))

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
        return as_json({"ready": is_ready}, 200 if is_ready else BUSY)


def _add_inference(web: FastAPI, service: Service) -> None:
    refusals = described(400, UNKNOWN, 408, TOO_LARGE, MEDIA, BUSY)
    bodies = (infer_body, rows_body, stream_body)
    parts = zip(ROUTES.items(), bodies, answer_contents(), strict=True)
    for (path, function), body, content in parts:
        own: dict[int | str, dict[str, Any]] = {
            200: {"description": "Answers.", "content": content}
        }
        web.post(
            path,
            tags=["inference"],
            response_class=Response,  # of no kind, so that ours is the only one told
            responses=own | refusals,
            openapi_extra=body(service.models),
        )(_endpoint(service, function))
    version = "/v2/models/{model}/versions/1/infer"
    web.post(version, include_in_schema=False)(_endpoint(service, infer))


def _endpoint(service: Service, function: Answering) -> Any:
    async def endpoint(model: str, request: Request) -> Response:
        return await function(service, model, request)

    endpoint.__name__, endpoint.__doc__ = function.__name__, function.__doc__
    return endpoint


def _shortcuts(service: Service) -> dict[str, Shortcut]:
    """The routes that answer, by whole addresses, past FastAPI's routing and parsing.

    Those take longer than a small model, and do nothing for a raw body. What is
    described, and other methods, go the long way.
    """
    found = {}
    for path, function in ROUTES.items():
        for name in service.models:
            own = _answered(partial(function, service, name), service)
            found[path.replace("{model}", name)] = Shortcut(path, own)
    return found


def _answered(
    function: Callable[[Request], Awaitable[Response]], service: Service
) -> Callable[[Request], Awaitable[Response]]:
    async def answered(request: Request) -> Response:
        try:
            return await function(request)
        except RefusedError as error:
            return _refusal(error, service.batcher)
        except ClientDisconnect as error:
            return await _gone(request, error)

    return answered


def _add_pages(web: FastAPI, service: Service) -> None:
    page = files("caveat.serve").joinpath("page.html").read_text(encoding="utf-8")
    headers = {"content-security-policy": _SECURITY}

    @web.get("/", include_in_schema=False)
    @web.head("/", include_in_schema=False)
    async def root() -> Response:
        return HTMLResponse(page, headers=headers)

    @web.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(docs_page(web.openapi()), headers=headers)

    @web.get("/metrics", tags=["operation"], response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Counts and times for Prometheus."""
        text = service.metrics.text(service.batcher.waiting)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    @web.get("/v1/models", tags=["inference"])
    async def models() -> Response:
        """All models, with what a person fills in."""
        own = [_told_model(name, model) for name, model in service.models.items()]
        return as_json({"models": own, "limits": service.limits.plain})


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


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return _refusal(error, request.app.state.batcher)


def _refusal(error: RefusedError, batcher: Batcher) -> Response:
    found = as_json({"error": str(error)}, error.status)
    if error.status == BUSY:
        found.headers["retry-after"] = str(batcher.retry_after())
    return found


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    found = as_json({"error": str(error.detail)}, error.status_code)
    found.headers.update(error.headers or {})
    if error.status_code == 405:
        found.headers["allow"] = ", ".join(sorted(_methods(request)))
    return found


def _methods(request: Request) -> set[str]:
    """All that an address takes; Starlette says those of its first route."""
    return {
        method
        for route in request.app.routes
        if route.matches(request.scope)[0] is not Match.NONE
        for method in getattr(route, "methods", None) or ()
    }


async def _gone(request: Request, error: Exception) -> Response:
    return as_json({"error": "The body did not arrive."}, 400)


def _is_name(name: Any) -> bool:
    if not isinstance(name, str) or not 1 <= len(name) <= 100:
        return False
    return name.isascii() and all(c.isalnum() or c in "-_." for c in name)
