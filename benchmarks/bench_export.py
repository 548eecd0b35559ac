"""An exported graph in ONNX Runtime, Caveat itself, and T calls of a plain export.

A plain export has no dropout, so its T calls give no uncertainty: they are what a loop
around an ordinary file would cost at least.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn

from benchmarks import options
from benchmarks.results import (
    FOLDER,
    Provenance,
    Report,
    console,
    store_json,
    store_markdown,
)
from benchmarks.timing import Timing, interleaved
from caveat import MCDropout, export
from caveat._torch import quiet_exporter

MODULE = "benchmarks.bench_export"
N_DRAWS, QUICK_DRAWS = 100, 10
CLOSE = 1e-5
COLUMNS = (
    "",
    "rows",
    "T calls ms",
    "graph ms",
    "ours ms",
    "calls / graph",
    "graph / ours",
)
NOTES = (
    "Mean and std of T draws; T calls: as many of the network as torch exports it.",
    "Medians of interleaved repetitions in one process, the same threads for all.",
    "ours: MCDropout.regress without closed forms, second and later calls.",
)


@dataclass(frozen=True)
class ExportCase:
    """A network, and one row of its input."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    rows: tuple[int, ...]


def perceptron() -> nn.Module:
    """Of a table: 13-50-50-1, dropout behind both hidden layers."""
    hidden = nn.Linear(13, 50), nn.ReLU(), nn.Dropout(0.1)
    more = nn.Linear(50, 50), nn.ReLU(), nn.Dropout(0.1)
    return nn.Sequential(*hidden, *more, nn.Linear(50, 1))


def lenet(rate: float) -> nn.Module:
    """Paper 001's, with dropout of this rate also behind the convolutions."""
    return nn.Sequential(
        *(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Dropout(rate)),
        *(nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Dropout(rate), nn.Flatten()),
        *(nn.Linear(800, 500), nn.ReLU(), nn.Dropout(0.5), nn.Linear(500, 10)),
    )


CASES = (
    ExportCase("MLP 13-50-50-1", perceptron, (13,), (1, 100)),
    ExportCase("LeNet, last layer", lambda: lenet(0.0), (1, 28, 28), (1, 32)),
    ExportCase("LeNet, all layers", lambda: lenet(0.5), (1, 28, 28), (1, 32)),
)


@dataclass(frozen=True)
class Measured:
    """Seconds per call of one case."""

    name: str
    rows: int
    times: dict[str, Timing]
    gap: float
    """Largest difference between the graph and Caveat, of mean and std."""

    @property
    def right(self) -> bool:
        """Whether the graph gives the numbers of Caveat."""
        return self.gap < CLOSE

    def row(self) -> list[str]:
        """Return a line of the table."""
        calls, graph, ours = (self.times[n].median for n in ("calls", "graph", "ours"))
        shown = [f"{1e3 * value:.3g}" for value in (calls, graph, ours)]
        ratios = [f"{calls / graph:.2f}", f"{graph / ours:.2f}"]
        return [self.name, str(self.rows), *shown, *ratios]

    def record(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        seconds = {name: timing._asdict() for name, timing in self.times.items()}
        return {"case": self.name, "rows": self.rows, "gap": self.gap, **seconds}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if a graph gave other numbers."""
    given = sys.argv[1:] if argv is None else list(argv)
    chosen, _ = options.parser(MODULE, __doc__ or "").parse_known_args(given)
    torch.set_num_threads(chosen.threads)
    repetitions = 1 if chosen.quick else chosen.repetitions
    n_draws = QUICK_DRAWS if chosen.quick else N_DRAWS
    out, found = console(), []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            for one in measured(case, Path(folder), n_draws, repetitions):
                out.print(f"  {' '.join(one.row())}", highlight=False)
                found.append(one)
    notes = (f"T = {n_draws}.", *NOTES)
    report = Report("Exported graphs", COLUMNS, [one.row() for one in found], notes)
    report.show(out)
    target = chosen.output or (None if chosen.quick else FOLDER)
    if target is not None:
        provenance = Provenance.now(MODULE, given)
        store_markdown(target / "export.md", provenance, [report])
        records = [one.record() for one in found]
        store_json(target / "export.json", provenance, n_draws=n_draws, cases=records)
    return 0 if all(one.right for one in found) else 1


def measured(
    case: ExportCase, folder: Path, n_draws: int, repetitions: int
) -> list[Measured]:
    """Export a case in both ways, and time it for each number of rows."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = case.make().eval()
        inputs = {rows: torch.randn(rows, *case.shape) for rows in case.rows}
    mc = MCDropout(model, seed=0, analytic=False)
    sampler = _session(export(mc, inputs[max(case.rows)], folder / "sampler.onnx"))
    plain = _session(_plain(model, inputs[max(case.rows)], folder / "plain.onnx"))
    return [
        _timed(case.name, x, mc, (sampler, plain), (n_draws, repetitions))
        for x in inputs.values()
    ]


def _timed(
    name: str, x: Tensor, mc: MCDropout, sessions: Any, count: tuple[int, int]
) -> Measured:
    (sampler, plain), (n_draws, repetitions) = sessions, count
    only = {plain.get_inputs()[0].name: x.numpy()}
    given = {"x": x.numpy(), "seed": np.array(0), "n_draws": np.array(n_draws)}

    def ours() -> tuple[Tensor, Tensor]:
        found = mc.regress(x, n_draws=n_draws, precision=1.0)
        return found.mean, found.epistemic_variance.sqrt()

    def graph() -> Any:
        return sampler.run(None, given)

    def calls() -> None:
        for _ in range(n_draws):
            plain.run(None, only)

    pairs = zip(graph(), ours(), strict=True)
    gap = max(float(np.abs(one - two.numpy()).max()) for one, two in pairs)
    variants = {"calls": calls, "graph": graph, "ours": ours}
    times = interleaved(variants, repetitions=repetitions)
    return Measured(name, len(x), times, gap)


def _plain(model: nn.Module, x: Tensor, path: Path) -> Path:
    sizes = ({0: torch.export.Dim.AUTO},)
    with quiet_exporter():
        torch.onnx.export(
            model, (x,), path, dynamic_shapes=sizes, dynamo=True, verbose=False
        )
    return path


def _session(path: Path) -> Any:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = torch.get_num_threads()
    settings.log_severity_level = 3
    return onnxruntime.InferenceSession(path, settings)


if __name__ == "__main__":
    raise SystemExit(main())
