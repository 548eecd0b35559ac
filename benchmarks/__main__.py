"""Run all benchmarks: ``python -m benchmarks [--quick]``, or ``make bench``."""

import sys
from collections.abc import Sequence

from benchmarks import (
    bench_digits,
    bench_error,
    bench_export,
    bench_eyes,
    bench_files,
    bench_honest,
    bench_latency,
    bench_linear,
    bench_memory,
    bench_moments,
    bench_peers,
    bench_predict,
    bench_sampling,
    bench_scoring,
    bench_serve,
    bench_tables,
    bench_training,
)

ALL = (
    bench_sampling,
    bench_error,
    bench_latency,
    bench_memory,
    bench_moments,
    bench_training,
    bench_predict,
    bench_files,
    bench_scoring,
    bench_serve,
    bench_linear,
    bench_tables,
    bench_eyes,
    bench_digits,
    bench_honest,
    bench_export,
    bench_peers,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run them one after the other with the same options; return the worst result."""
    given = sys.argv[1:] if argv is None else list(argv)
    return max(bench.main(given) for bench in ALL)


if __name__ == "__main__":
    raise SystemExit(main())
