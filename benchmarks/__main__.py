"""Run all benchmarks: ``python -m benchmarks [--quick]``, or ``make bench``."""

import sys
from collections.abc import Sequence

from benchmarks import bench_memory, bench_peers, bench_sampling


def main(argv: Sequence[str] | None = None) -> int:
    """Run time, memory and peers with the same options; return the worst result."""
    given = sys.argv[1:] if argv is None else list(argv)
    mains = (bench_sampling.main, bench_memory.main, bench_peers.main)
    return max(run(given) for run in mains)


if __name__ == "__main__":
    raise SystemExit(main())
