"""The one door to all engines."""

import os
from collections.abc import Callable, Generator, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

from caveat.engines.jobs import refuse_lost, single_threaded
from caveat.engines.local import on_processes
from caveat.errors import ParameterError

J = TypeVar("J")
A = TypeVar("A")


class Engine(StrEnum):
    """What runs jobs."""

    local = "local"
    ray = "ray"


def spread(
    run: Callable[[J], A],
    jobs: Sequence[J],
    n_workers: int | None = None,
    *,
    engine: Engine = Engine.local,
    address: str | None = None,
    on_lost: Callable[[J], A] = refuse_lost,
) -> Generator[tuple[J, A], None, None]:
    """The jobs with the answers of ``run``, in the order in which they end.

    Parameters
    ----------
    run : callable
        A function of a module, so that other processes can find it.
    jobs : sequence
        Each of them small enough to be sent.
    n_workers : int, optional
        Processes, by default one per core; with 1 all is done in this one, in order.
        On a cluster, how many jobs run at a time; by default as many as it has cores.
    engine : Engine
        Processes of this machine, or Ray.
    address : str, optional
        Of a Ray cluster; by default one is started on this machine.
    on_lost : callable
        The answer to a job whose process has ended three times; by default an error.

    Yields
    ------
    A job, and what ``run`` returns for it.
    """
    if engine is not Engine.ray and address is not None:
        raise ParameterError(
            f"address is of a Ray cluster: pass engine ray. Got {str(engine)!r}."
        )
    alone: Any = partial(single_threaded, run)
    if not jobs:
        return
    if engine is Engine.ray:
        from caveat.engines.ray import on_ray  # here: it brings Ray

        yield from on_ray(alone, jobs, n_workers, address=address, on_lost=on_lost)
        return
    count = min(n_workers or os.cpu_count() or 1, len(jobs))
    if count <= 1:
        for job in jobs:
            yield job, alone(job)
        return
    yield from on_processes(alone, jobs, count, on_lost)
