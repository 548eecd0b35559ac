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
    except (ConnectionError, ValueError, RuntimeError) as error:
        why = str(error).splitlines()[0]
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
        socket.create_connection((host.strip("[]"), int(port)), _REACH).close()
    except (OSError, OverflowError) as error:
        raise ParameterError(
            f"No Ray cluster could be reached at {address}: {error}. Check the "
            f"address, or use processes (--engine local)."
        ) from error


def _end_soon(ray: Any) -> None:
    """Tell Ray to end, and wait a little: a cluster of ours ends with this process."""
    ending = threading.Thread(target=ray.shutdown, daemon=True)
    ending.start()
    ending.join(_PATIENCE)
