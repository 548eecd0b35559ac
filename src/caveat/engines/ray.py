"""Jobs on Ray: a cluster reached by its address, or one started here for the while."""

import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from caveat._optional import require
from caveat.engines.jobs import TRIES
from caveat.errors import ParameterError

J = TypeVar("J")
A = TypeVar("A")

_LOOK_UP = 0.2  # seconds between looks for Ctrl-C
_PATIENCE = 1.0  # seconds that a cluster of ours has to end in
_REACH = 5.0  # seconds that the address of a cluster has to answer in
_AHEAD = 2  # jobs waiting for each that runs
_SETTINGS, _FRAME = b"\x04", 9  # a kind of frame of HTTP/2; bytes of the head of one
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning about GPUs
}


def on_ray(
    run: Callable[[J], A],
    jobs: Sequence[J],
    n_workers: int | None,
    *,
    address: str | None,
    on_lost: Callable[[J], A],
) -> Iterator[tuple[J, A]]:
    """Jobs and answers, as they end; Ray gives a job of a lost process to another."""
    ray: Any = require("ray", extra="scale")
    with _cluster(ray, n_workers, address):
        cores = int(ray.cluster_resources().get("CPU", 1))
        most = _AHEAD * (n_workers or cores) if address is None else n_workers or cores
        task = ray.remote(max_retries=TRIES - 1, num_cpus=1)(_called)
        function = ray.put(run)
        todo, running = deque(jobs), dict[Any, J]()
        while todo or running:
            while todo and len(running) < most:
                job = todo.popleft()
                running[task.remote(function, job)] = job
            ended, _ = ray.wait(list(running), timeout=_LOOK_UP)
            for found in ended:
                job = running.pop(found)
                yield job, _answer(ray, found, job, on_lost)


def _called(run: Callable[[J], A], job: J) -> A:
    return run(job)


def _answer(ray: Any, found: Any, job: J, on_lost: Callable[[J], A]) -> A:
    lost = (
        ray.exceptions.WorkerCrashedError,
        ray.exceptions.NodeDiedError,
        ray.exceptions.OutOfMemoryError,
    )
    try:
        answer: A = ray.get(found)
    except lost:
        return on_lost(job)
    except ray.exceptions.RayTaskError as told:
        error = told.cause  # as the job has raised it
        raise error from told
    return answer


@contextmanager
def _cluster(ray: Any, n_workers: int | None, address: str | None) -> Iterator[None]:
    if ray.is_initialized():  # by the caller, who also ends it
        yield
        return
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    _check_reachable(address)
    settings: dict[str, Any] = {"address": address}
    if address is None:
        own = {"num_cpus": n_workers, "include_dashboard": False}
        settings = {"address": "local", **own}
    try:
        ray.init(
            **settings,
            logging_level="ERROR",
            log_to_driver=False,
        )
    except Exception as error:  # Ray raises all kinds, a plain one among them
        why = (str(error).splitlines() or [type(error).__name__])[0]
        where = "on this machine" if address is None else f"at {address}"
        raise ParameterError(
            f"No Ray cluster could be reached {where}: {why} Check the address, or "
            f"use processes (--engine local)."
        ) from error
    try:
        yield
    except BaseException:  # Ctrl-C, too
        _end_soon(ray)
        raise
    ray.shutdown()


def _check_reachable(address: str | None) -> None:
    """Knock at HOST:PORT first: Ray itself goes on trying for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not (host and port.isdigit()):
        return  # "auto", "local" or a name, which Ray answers at once
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _REACH) as found:
            why = (
                None if _is_tls() or _speaks(found) else "something else answers there"
            )
    except (OSError, OverflowError) as error:
        why = str(error)
    if why is not None:
        raise ParameterError(
            f"No Ray cluster could be reached at {address}: {why}. Check the address, "
            f"or use processes (--engine local)."
        )


def _speaks(found: socket.socket) -> bool:
    """Whether HTTP/2, in which all parts of Ray talk, is answered by its settings."""
    found.sendall(_GREETING)
    answer = b""
    while len(answer) < _FRAME and (more := found.recv(_FRAME)):
        answer += more
    return answer[3:4] == _SETTINGS


def _is_tls() -> bool:
    """Then a greeting in plain text is not answered."""
    return os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true")


def _end_soon(ray: Any) -> None:
    """Tell Ray to end, and wait a little: a cluster of ours ends with this process."""
    ending = threading.Thread(target=ray.shutdown, daemon=True)
    ending.start()
    ending.join(_PATIENCE)
