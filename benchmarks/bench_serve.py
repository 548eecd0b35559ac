"""Requests a second of ``caveat.serve`` beside a plain FastAPI loop of T passes.

Both servers run in processes of their own, and are asked by the same 64 clients for one
row at a time, one server after the other, in turns: two minutes a model. With
``--load`` the servers are then asked at 80 % of their capacity for ``--seconds``:
latencies, statuses, growth of memory. Only whole runs are stored, of all models and ten
minutes or more.
"""

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import nn

import caveat
from benchmarks.results import FOLDER, Provenance, Report, console, store_markdown

MODULE = "benchmarks.bench_serve"
N_DRAWS = 100
CLIENTS = 64
GOAL = 10.0  # times the plain loop
BUDGET = 0.05  # seconds, under load
WHOLE = 600.0  # seconds
LATE = 60.0  # seconds after which a benchmark gives up on its server
SHAPES = {"mlp": (13,), "lenet": (1, 28, 28)}


@dataclass
class Seen:
    """What clients saw of a server."""

    seconds: float = 0.0
    codes: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    effort: float = 0.0
    """Of the clients, in cores: near 1 they would measure themselves."""

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.codes[200] / self.seconds

    def quantile(self, q: float) -> float:
        """Of the latencies, in milliseconds."""
        return float(1e3 * np.quantile(self.latencies, q))

    @property
    def growth(self) -> float:
        """Of memory, from the first tenth to the last, but for a start of 5 %."""
        start, tenth = len(self.memory) // 20, max(1, len(self.memory) // 10)
        first = float(np.mean(self.memory[start : start + tenth]))
        return float(np.mean(self.memory[-tenth:])) / first - 1.0


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns 1 if a goal is missed in a full run."""
    given = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument(
        "--load",
        nargs="*",
        choices=SHAPES,
        help="models that are also asked at 80 %% of their capacity (alone: all)",
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="of the load")
    parser.add_argument("--models", nargs="+", default=list(SHAPES), choices=SHAPES)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    chosen, _ = parser.parse_known_args(given)
    if chosen.child is not None:
        return _child(*chosen.child)
    gc.freeze()  # pauses of the clients are not the server's
    turns, each = (1, 1.5) if chosen.quick else (3, 10.0)
    seconds = min(5.0, chosen.seconds) if chosen.quick else chosen.seconds
    out, rates, loads = console(), {}, {}
    for name in chosen.models:
        out.print(f"{name}: both servers, {2 * turns * (each + 0.5):.0f} s")
        rates[name] = _beside(name, turns, each)
        if chosen.load is not None and name in (chosen.load or SHAPES):
            out.print(f"{name}: under load, {seconds:.0f} s")
            loads[name] = _under_load(name, 0.8 * rates[name][0].rate, seconds)
    reports = [_report(rates), *([_load_report(loads, seconds)] if loads else [])]
    for report in reports:
        report.show(out)
    if set(loads) == set(SHAPES) and seconds >= WHOLE:
        provenance = Provenance.now(MODULE, given)
        store_markdown(FOLDER / "serve.md", provenance, reports)
    elif loads:
        out.print(f"Not stored: needs all models, and --seconds {WHOLE:.0f} or more.")
    fine = all(ours.rate >= GOAL * plain.rate for ours, plain in rates.values())
    return int(not chosen.quick and not (fine and all(map(_is_fine, loads.values()))))


# ------------------------------------------------------------ servers


def network(name: str) -> nn.Sequential:
    """A network with dropout, untrained: speed does not see the weights."""
    torch.manual_seed(0)
    if name == "mlp":
        layers = [nn.Linear(13, 50), nn.ReLU(), nn.Dropout(0.1)]
        layers += [nn.Linear(50, 50), nn.ReLU(), nn.Dropout(0.1), nn.Linear(50, 1)]
        return nn.Sequential(*layers)
    convolutions = [nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5)]
    head = [nn.Linear(800, 500), nn.ReLU(), nn.Dropout(), nn.Linear(500, 10)]
    return nn.Sequential(*convolutions, nn.MaxPool2d(2), nn.Flatten(), *head)


def plain_app(name: str) -> Any:
    """What people write: T passes in train mode for each request."""
    from fastapi import FastAPI, Request

    web, net = FastAPI(), network(name).train()

    @web.post("/v2/models/m/infer")
    async def infer(request: Request) -> dict[str, Any]:
        own = (await request.json())["inputs"][0]
        x = torch.tensor(own["data"]).reshape(own["shape"])
        with torch.no_grad():
            draws = torch.stack([net(x) for _ in range(N_DRAWS)])
        if name == "lenet":
            draws = draws.softmax(-1)
        return {"mean": draws.mean(0).tolist(), "std": draws.std(0).tolist()}

    return web


def _child(kind: str, name: str) -> int:
    """A server, until it is told to stop; its port is its first line."""
    import uvicorn

    from caveat.serve.running import server_of

    torch.set_num_threads(1)
    if kind == "plain":
        web = plain_app(name)
        setup = uvicorn.Config(web, host="127.0.0.1", port=0, access_log=False)
        server = uvicorn.Server(setup)
    else:
        mc = caveat.MCDropout(network(name), seed=0)
        precision = 4.0 if name == "mlp" else None
        example = torch.zeros(1, *SHAPES[name])
        own = caveat.serve.NetworkModel(mc, example, precision=precision)
        server = server_of(caveat.serve.app({"m": own}), "127.0.0.1", 0)
    server.run()
    return 0


@contextmanager
def _server(kind: str, name: str) -> Iterator[tuple[int, int]]:
    """Port and process."""
    command = [sys.executable, "-m", MODULE, "--child", kind, name]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if "running on http" in line:
                port = int(line.split("127.0.0.1:")[1].split()[0])
                # Nobody waits for a server that waits for its log to be read.
                log = threading.Thread(target=_relay, args=(process.stderr,))
                log.start()
                yield port, process.pid
                break
        else:
            raise RuntimeError(f"the server ended with {process.wait()}")
    finally:
        process.terminate()
        try:
            process.wait(LATE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def _relay(log: IO[str]) -> None:
    """What a server says of itself is of interest only if it is wrong."""
    for line in log:
        if not line.startswith("INFO"):
            sys.stderr.write(line)


# ------------------------------------------------------------ clients


def _request(name: str, parameters: dict[str, Any]) -> bytes:
    shape = [1, *SHAPES[name]]
    data = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    own = {"name": "x", "shape": shape, "datatype": "FP32"}
    outputs = ("mean", "std") if name == "mlp" else ("probs", "mutual_information")
    body = {
        "inputs": [own | {"data": data.round(3).reshape(-1).tolist()}],
        "outputs": [{"name": output} for output in outputs],
        "parameters": parameters,
    }
    raw = json.dumps(body).encode()
    head = f"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(raw)}"
    return head.encode() + b"\r\n\r\n" + raw


async def _asked(port: int, raw: bytes, seen: Seen, wait: Callable[[], float]) -> None:
    """One client: asks when it is told to, until it is told to end (below 0)."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (due := wait()) >= 0.0:
        if due:
            await asyncio.sleep(due - time.monotonic())
        start = due or time.monotonic()
        writer.write(raw)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        seen.codes[int(head.split()[1])] += 1
        seen.latencies.append(time.monotonic() - start)
    writer.close()


async def _clients(
    port: int, raw: bytes, seconds: float, pid: int, rate: float | None
) -> Seen:
    """Closed loops, or requests at a rate, whose latency counts from when due."""
    seen, start = Seen(), time.monotonic()
    gaps, due = np.random.default_rng(0), start

    def closed() -> float:
        return 0.0 if time.monotonic() < start + seconds else -1.0

    def at_a_rate() -> float:
        nonlocal due
        due += float(gaps.exponential(1.0 / (rate or 1.0)))
        # Of a server that is far behind enough is known.
        is_late = time.monotonic() > start + seconds + LATE / 2
        return due if due < start + seconds and not is_late else -1.0

    wait = closed if rate is None else at_a_rate
    watcher = asyncio.create_task(_watch(pid, seen))
    effort = time.process_time()
    async with asyncio.timeout(seconds + LATE):
        await asyncio.gather(*(_asked(port, raw, seen, wait) for _ in range(CLIENTS)))
    watcher.cancel()
    seen.seconds = time.monotonic() - start
    seen.effort = (time.process_time() - effort) / seen.seconds
    return seen


async def _watch(pid: int, seen: Seen) -> None:
    path = Path(f"/proc/{pid}/status")
    while path.exists():
        line = next(x for x in path.read_text().splitlines() if x.startswith("VmRSS"))
        seen.memory.append(1024 * int(line.split()[1]))
        await asyncio.sleep(0.5)


def _beside(name: str, turns: int, seconds: float) -> tuple[Seen, Seen]:
    """Of ours and of the plain loop the best of some turns."""
    raw, best = _request(name, {"n_draws": N_DRAWS}), [Seen(1.0), Seen(1.0)]
    with _server("ours", name) as ours, _server("plain", name) as plain:
        for _ in range(turns):
            for place, (port, pid) in enumerate((ours, plain)):
                asyncio.run(_clients(port, raw, 0.5, pid, None))  # warm
                seen = asyncio.run(_clients(port, raw, seconds, pid, None))
                assert set(seen.codes) == {200}, seen.codes
                best[place] = max(best[place], seen, key=lambda own: own.rate)
    return best[0], best[1]


def _under_load(name: str, rate: float, seconds: float) -> Seen:
    raw = _request(name, {"budget_ms": 1e3 * BUDGET, "n_draws": N_DRAWS})
    with _server("ours", name) as (port, pid):
        asyncio.run(_clients(port, raw, 2.0, pid, None))  # warm
        return asyncio.run(_clients(port, raw, seconds, pid, rate))


def _is_fine(seen: Seen) -> bool:
    no_fault = not any(code >= 500 for code in seen.codes)
    return no_fault and seen.quantile(0.95) <= 1.1e3 * BUDGET and seen.growth < 0.02


def _report(rates: dict[str, tuple[Seen, Seen]]) -> Report:
    return Report(
        title="`caveat.serve` beside a plain FastAPI loop",
        columns=("model", "ours, requests a second", "plain loop", "ratio", "clients"),
        rows=[
            [
                name,
                f"{ours.rate:,.0f}",
                f"{plain.rate:,.0f}",
                f"{ours.rate / plain.rate:.1f}",
                f"{ours.effort:.2f}",
            ]
            for name, (ours, plain) in rates.items()
        ],
        notes=(
            f"{CLIENTS} clients, one row and {N_DRAWS} draws a request, JSON.",
            "clients: cores that they take while ours answers.",
        ),
    )


def _load_report(loads: dict[str, Seen], seconds: float) -> Report:
    return Report(
        title="At 80 % of the capacity",
        columns=("model", "requests", "5xx", "p50 ms", "p95 ms", "memory growth"),
        rows=[
            [
                name,
                f"{sum(seen.codes.values()):,}",
                str(sum(n for code, n in seen.codes.items() if code >= 500)),
                f"{seen.quantile(0.5):.1f}",
                f"{seen.quantile(0.95):.1f}",
                f"{100 * seen.growth:.2f} %",
            ]
            for name, seen in loads.items()
        ],
        notes=(
            f"{seconds:.0f} seconds, budget {1e3 * BUDGET:.0f} ms; requests come at "
            f"random, and latency counts from when one was due.",
            "memory growth: of the server, from the first tenth to the last, but for a "
            "start of 5 %.",
        ),
    )


if __name__ == "__main__":
    raise SystemExit(main())
