"""Counts and times as Prometheus reads them."""

import threading
from bisect import bisect_left
from collections import Counter
from typing import final

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 1024)
_HELP = {
    "caveat_requests_total": "Requests, by route and status.",
    "caveat_rows_total": "Rows answered.",
    "caveat_draws_total": "Draws, of all rows.",
    "caveat_batches_total": "Batches computed.",
    "caveat_batched_requests_total": "Requests in them.",
    "caveat_compute_seconds_total": "Seconds spent computing.",
    "caveat_request_seconds": "Seconds from a request to its answer.",
    "caveat_batch_rows": "Rows of a batch.",
    "caveat_queue": "Requests that wait.",
}


@final
class Metrics:
    """Counters and histograms of one process."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._bins: dict[tuple[str, str], list[float]] = {}
        self._lock = threading.Lock()

    def request(self, route: str, status: int, seconds: float) -> None:
        """One request was answered."""
        with self._lock:
            labels = f'route="{route}",code="{status}"'
            self._counts["caveat_requests_total", labels] += 1
            self._bin("caveat_request_seconds", f'route="{route}"', seconds, _SECONDS)

    def batch(
        self, name: str, rows: int, draws: int, requests: int, seconds: float
    ) -> None:
        """One batch was computed."""
        label = f'model="{_escaped(name)}"'
        own = {
            "rows": rows,
            "draws": draws,
            "batches": 1,
            "batched_requests": requests,
            "compute_seconds": seconds,
        }
        with self._lock:
            for what, value in own.items():
                self._counts[f"caveat_{what}_total", label] += value  # type: ignore[assignment]
            self._bin("caveat_batch_rows", label, rows, _ROWS)

    def _bin(
        self, name: str, labels: str, value: float, edges: tuple[float, ...]
    ) -> None:
        found = self._bins.setdefault((name, labels), [0.0] * (len(edges) + 2))
        found[bisect_left(edges, value)] += 1
        found[-1] += value

    def text(self, waiting: int) -> str:
        """All of it."""
        with self._lock:
            counts = sorted(self._counts.items())
            bins = sorted((key, list(own)) for key, own in self._bins.items())
        lines: list[str] = []
        last = ""
        for (name, labels), value in counts:
            lines += _head(name, "counter") if name != last else []
            lines.append(f"{name}{{{labels}}} {value:.10g}")
            last = name
        for (name, labels), own in bins:
            lines += _head(name, "histogram") if name != last else []
            lines += _histogram(name, labels, own)
            last = name
        lines += [*_head("caveat_queue", "gauge"), f"caveat_queue {waiting}"]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str) -> list[str]:
    return [f"# HELP {name} {_HELP[name]}", f"# TYPE {name} {kind}"]


def _histogram(name: str, labels: str, own: list[float]) -> list[str]:
    edges = _ROWS if name == "caveat_batch_rows" else _SECONDS
    found, total = [], 0
    for edge, count in zip([*map(str, edges), "+Inf"], own[:-1], strict=True):
        total += int(count)
        found.append(f'{name}_bucket{{{labels},le="{edge}"}} {total}')
    sums = (
        f"{name}_sum{{{labels}}} {own[-1]:.10g}",
        f"{name}_count{{{labels}}} {total}",
    )
    return [*found, *sums]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
