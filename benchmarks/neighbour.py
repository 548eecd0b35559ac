"""Another busy process on the same machine, as users have them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST = 3600.0
"""Seconds after which a neighbour stops by itself, whatever became of us."""

_WORK = """
import os, sys, time
import numpy as np
parent, end = os.getppid(), time.monotonic() + float(sys.argv[1])
block = np.random.default_rng(0).normal(size=(300, 300))
print("busy", flush=True)
while time.monotonic() < end and os.getppid() == parent:
    block @ block
"""
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@contextmanager
def busy_neighbour(*, longest: float = LONGEST) -> Iterator[subprocess.Popen[str]]:
    """One process that multiplies matrices on one thread until the block is left.

    Raises RuntimeError on exit if it stopped before: then the block was quiet.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", _WORK, str(longest)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **_ONE_THREAD},
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "busy":
            raise RuntimeError("the busy process beside the benchmark did not start")
        yield process
        if process.poll() is not None:
            raise RuntimeError(
                f"the busy process beside the benchmark stopped before its end "
                f"(it runs {longest:g} s at most): the figures are not what they say"
            )
    finally:
        process.kill()
        process.communicate()
