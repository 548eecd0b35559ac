"""A job of Table 1 by the protocol that it names."""

import time
from collections.abc import Callable
from dataclasses import replace

from caveat.papers.table1.jobs import Job, Record
from caveat.papers.table1.pbp import run_pbp
from caveat.papers.table1.scoring import run_planned
from caveat.papers.table1.vi import run_vi

# Protocols that train all splits of a set as one stack.
STACKED: dict[str, Callable[[Job], list[Record]]] = {"pbp": run_pbp, "vi": run_vi}


def run(job: Job) -> list[Record]:
    """The records of a job, one per split and variant, with the CPU time of a split."""
    start = time.process_time()
    records = STACKED.get(job.protocol, run_planned)(job)
    seconds = (time.process_time() - start) / len(job.splits)
    return [replace(record, seconds=seconds) for record in records]
