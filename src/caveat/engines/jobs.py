"""What all engines share: how a job is run, and what becomes of a lost one."""

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from caveat.errors import CaveatError

J = TypeVar("J")
A = TypeVar("A")
TRIES = 3  # of a job whose process has ended under it


class WorkerLostError(CaveatError, RuntimeError):
    """The process of a job has ended before its answer came, several times."""


def single_threaded(run: Callable[[J], A], job: J) -> A:
    """Small matrices lose by more threads, and the cores are taken anyway."""
    with threadpool_limits(1):
        return run(job)


def refuse_lost(job: Any) -> NoReturn:
    """The answer to a lost job, if nobody has a better one."""
    raise WorkerLostError(
        f"The process of the job {job!r} ended {TRIES} times before it was done: it "
        "was killed, or there was too little memory. In a script, start from below "
        "`if __name__ == '__main__':`."
    )
