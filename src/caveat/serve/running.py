"""A server process: files in, requests answered, until it is told to stop."""

import contextlib
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import uvicorn

from caveat.errors import ParameterError
from caveat.files import load
from caveat.serve.connections import PatientConnection
from caveat.serve.limits import Limits
from caveat.serve.stopping import DrainingServer
from caveat.serve.tokens import read_tokens
from caveat.serve.web import app


def run(
    paths: Sequence[Any],
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    limits: Limits | None = None,
    token_file: Any = None,
) -> None:
    """Serve model files until SIGTERM or Ctrl-C; what was accepted is answered first.

    Parameters
    ----------
    paths : sequence of str or Path
        Model files; the name of a file without its ending is that of the model.
    host : str, default "127.0.0.1"
        Which address to listen on.
    port : int, default 8080
        0 takes a free one, which is printed.
    limits : Limits, optional
        What is taken and what is refused.
    token_file : str or Path, optional
        Tokens, one a line.
    """
    _check_address(host, port)
    torch.set_num_threads(1)  # one process a core: threads only cost
    tokens = () if token_file is None else read_tokens(token_file)
    models: dict[str, Any] = {}
    for path in paths:
        name = re.sub(r"[^A-Za-z0-9._-]", "-", Path(path).stem)
        if name in models:
            raise ParameterError(
                f"Two models would be called {name!r}; rename one of the files."
            )
        models[name] = load(path)
    own = app(models, limits=limits, tokens=tokens)
    with contextlib.suppress(KeyboardInterrupt):  # the way to stop it
        server_of(own, host, port).run()


def server_of(web: Any, host: str, port: int) -> DrainingServer:
    """The process behind ``caveat serve``, for an application of ours.

    Parameters
    ----------
    web : FastAPI
        Made by :func:`caveat.serve.app`.
    host : str
        Which address to listen on.
    port : int
        0 takes a free one.

    Returns
    -------
    DrainingServer
    """
    config = uvicorn.Config(
        web,
        host=host,
        port=port,
        http=PatientConnection,
        proxy_headers=False,  # nobody asks who the client is
        ws="none",
        log_level="info",
        access_log=False,
        server_header=False,
        timeout_keep_alive=15,
        backlog=2048,
    )
    return DrainingServer(config, web.state.batcher.drain)


def _check_address(host: str, port: int) -> None:
    """Say what is wrong with an address before models are loaded."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(place)
    except OSError as error:
        raise ParameterError(
            f"The server cannot listen on {host}, port {port}: {error.strerror}. Give "
            f"an address of this machine and a free port (--host, --port; 0 takes any)."
        ) from error


def milliseconds(text: str) -> float:
    """Seconds of ``50ms``, ``0.05s`` or ``50``, which are milliseconds.

    Parameters
    ----------
    text : str
        A number, and perhaps its unit.

    Returns
    -------
    float
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s)?\s*", text)
    if found is None or float(found[1]) <= 0.0:
        raise ParameterError(f"A latency budget must be as 50ms or 0.2s. Got {text!r}.")
    return float(found[1]) * (1.0 if found[2] == "s" else 1e-3)
