"""A job of Table 1 by the protocol that it names."""

from collections.abc import Callable

from caveat.papers.table1.jobs import Job, Record
from caveat.papers.table1.pbp import run_pbp
from caveat.papers.table1.scoring import run_planned
from caveat.papers.table1.vi import run_vi

# Protocols that train all splits of a set as one stack.
STACKED: dict[str, Callable[[Job], list[Record]]] = {"pbp": run_pbp, "vi": run_vi}


def run(job: Job) -> list[Record]:
    """The records of a job, one per split and variant."""
    return STACKED.get(job.protocol, run_planned)(job)
