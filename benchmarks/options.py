"""The command-line options that all benchmarks share."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.results import FOLDER
from benchmarks.workloads import Workload, select


@dataclass(frozen=True)
class Options:
    """What to run and where to store it."""

    quick: bool
    threads: int
    repetitions: int
    workloads: tuple[Workload, ...]
    folder: Path | None
    """Where results go; ``None`` for a smoke run or a part, which prove nothing."""


def parser(module: str, description: str) -> argparse.ArgumentParser:
    """Return a parser that knows the common options."""
    found = argparse.ArgumentParser(f"python -m {module}", description=description)
    found.add_argument(
        "--quick", action="store_true", help="few draws, one repetition, no targets"
    )
    found.add_argument("--threads", type=int, default=2, help="threads of torch")
    found.add_argument("--repetitions", type=int, default=5, help="median of so many")
    found.add_argument("--only", nargs="+", metavar="W1", help="these workloads only")
    found.add_argument(
        "--output",
        type=Path,
        help="folder for the results (default: benchmarks/results; nothing is stored "
        "with --quick or --only unless this is given)",
    )
    return found


def parse(found: argparse.ArgumentParser, argv: Sequence[str] | None) -> Options:
    """Read the options and set the number of threads."""
    given = found.parse_args(argv)
    try:
        workloads = select(given.only)
    except ValueError as error:
        found.error(str(error))
    torch.set_num_threads(given.threads)
    part = given.quick or given.only
    return Options(
        quick=given.quick,
        threads=given.threads,
        repetitions=1 if given.quick else given.repetitions,
        workloads=workloads,
        folder=given.output or (None if part else FOLDER),
    )
