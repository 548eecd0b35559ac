"""Put the stored sampling results into README.md: ``python -m benchmarks.quote``."""

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_BLOCK = re.compile(r"(<!-- bench:begin -->\n).*?(<!-- bench:end -->)", re.DOTALL)
_HEAD = "| | plain loop | Caveat | ratio | one plain pass | first call, 2 draws |"
_CLOSER = " to the error of 100 plain draws |"


def table(results: dict[str, Any], errors: dict[str, float] | None = None) -> str:
    """The rows of README's table, and where they come from.

    ``errors`` are the ratios of ``bench_error`` by workload, if it has been run.
    """
    columns = 7 if errors else 6
    head = f"{_HEAD}{_CLOSER if errors else ''}\n{'|---' * columns}|\n"
    rows = "".join(_row(found, errors) for found in results["workloads"])
    machine = results["machine"]
    source = (
        f"\n`{results['command']}` on {results['date']}: {machine['cores']} cores, "
        f"{machine['cpu']}, torch {machine['torch']}. Medians, default settings, "
        f"summary statistics included. The plain loop is eval mode with dropout "
        f"switched on, T passes; all numbers, memory and floors: "
        f"[benchmarks/results](benchmarks/results/sampling.md).\n"
    )
    return head + rows + source


def quoted(
    text: str, results: dict[str, Any], errors: dict[str, float] | None = None
) -> str:
    """``text`` with the table between its markers."""
    return _BLOCK.sub(lambda found: found[1] + table(results, errors) + found[2], text)


def stored() -> dict[str, Any]:
    """The results of the last full run."""
    path = ROOT / "benchmarks" / "results" / "sampling.json"
    results: dict[str, Any] = json.loads(path.read_text())
    return results


def stored_errors() -> dict[str, float] | None:
    """The ratios of the last full run of ``bench_error``, if there was one."""
    path = ROOT / "benchmarks" / "results" / "error.json"
    if not path.exists():
        return None
    found = json.loads(path.read_text())["workloads"]
    return {one["name"]: one["ratio"] for one in found}


def main() -> int:
    """Rewrite README.md."""
    readme = ROOT / "README.md"
    readme.write_text(quoted(readme.read_text(), stored(), stored_errors()))
    return 0


def _row(found: dict[str, Any], errors: dict[str, float] | None) -> str:
    what = f"{found['description']}, T = {found['n_draws']:,}"
    ours, one = found["ours_seconds"]["median"], found["one_pass_seconds"]["median"]
    return (
        f"| {what} | {found['naive']:.1f} s | {ours:.2f} s | **{found['ratio']:.3g}x** "
        f"| {one * 1000:.3g} ms | {found['cold_start_seconds'] * 1000:.0f} ms |"
        f"{_closer(found['workload'], errors)}\n"
    )


def _closer(name: str, errors: dict[str, float] | None) -> str:
    if not errors:
        return ""
    return f" **{errors[name]:.3g}x** |" if name in errors else " |"


if __name__ == "__main__":
    sys.exit(main())
