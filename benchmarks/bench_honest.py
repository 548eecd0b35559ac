"""Are Monte Carlo errors what they say, on networks that chose nothing about them?

Over seeds, the square of (mean - truth) / error is 1 on average if an error is honest:
below 1 it is too large, above 1 too small. The networks are none of those by which the
errors of stratified draws were made (tests/sampling/test_stratified.py).
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from sklearn.datasets import load_wine, make_friedman1, make_moons
from torch import Tensor, nn

from benchmarks.results import FOLDER, Provenance, Report, console, store_markdown
from caveat import MCDropout

MODULE = "benchmarks.bench_honest"
SEEDS = 120
DRAWS = (32, 64, 100, 256)
CLEAR = 0.05  # of p (1 - p): below it a probability is made by rare draws
COLUMNS = ("network", "draws", "outputs", "mean square", "largest of an output")
NOTES = (
    "Square of (mean - truth) / error over seeds; the truth is the mean of all seeds.",
    f"Class probabilities count where p (1 - p) is above {CLEAR:g}.",
    "Closed forms are off, so that all errors are those of draws.",
)
Rows = tuple[Tensor, Tensor]


class Residual(nn.Module):
    """Three blocks around a stream, each with dropout inside."""

    def __init__(self, inputs: int, outputs: int, rate: float) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(inputs, 64), nn.Linear(64, outputs)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                *(nn.LayerNorm(64), nn.Linear(64, 64), nn.GELU()),
                *(nn.Dropout(rate), nn.Linear(64, 64)),
            )
            for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        """The stream, and what each block adds to it."""
        h: Tensor = self.first(x)
        for block in self.blocks:
            h = h + block(h)
        found: Tensor = self.last(h)
        return found


class Reader(nn.Module):
    """A recurrent network that reads the columns one by one."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.body = nn.GRU(1, 24, 2, batch_first=True, dropout=rate)
        self.drop, self.last = nn.Dropout(rate), nn.Linear(24, 1)

    def forward(self, x: Tensor) -> Tensor:
        """What is known after the last column."""
        found: Tensor = self.last(self.drop(self.body(x.unsqueeze(-1))[0][:, -1]))
        return found


def perceptron(rate: float, *sizes: int) -> nn.Sequential:
    """With dropout behind each hidden layer."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes[:-1]):
        layers += [nn.Linear(inputs, outputs), nn.SiLU(), nn.Dropout(rate)]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


def friedman() -> Rows:
    """A regression on ten columns."""
    x, y = make_friedman1(400, 10, noise=1.0, random_state=1)
    return _floats(x), _floats((y - y.mean()) / y.std()).unsqueeze(-1)


def wine() -> Rows:
    """Three classes."""
    x, y = load_wine(return_X_y=True)
    return _floats((x - x.mean(0)) / x.std(0)), torch.as_tensor(y)


def moons() -> Rows:
    """Two classes that meet."""
    x, y = make_moons(400, noise=0.25, random_state=1)
    return _floats(x), torch.as_tensor(y)


@dataclass(frozen=True)
class HonestCase:
    """A network and the rows that it learns from."""

    network: Callable[[], nn.Module]
    rows: Callable[[], Rows]

    def trained(self) -> tuple[nn.Module, Tensor, bool]:
        """The network, some rows, and whether it is a regression."""
        x, y = self.rows()
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(0)
            model = self.network().train()
            is_regression = y.is_floating_point()
            loss = nn.MSELoss() if is_regression else nn.CrossEntropyLoss()
            optimiser = torch.optim.Adam(model.parameters(), 3e-3)
            for _ in range(300):
                batch = torch.randint(len(x), (64,))
                optimiser.zero_grad()
                loss(model(x[batch]), y[batch]).backward()
                optimiser.step()
        return model.eval(), x[:: len(x) // 16], is_regression


CASES = {
    "residual, 0.1": HonestCase(lambda: Residual(10, 1, 0.1), friedman),
    "perceptron, 0.5": HonestCase(lambda: perceptron(0.5, 10, 50, 30, 1), friedman),
    "GRU, 0.2": HonestCase(lambda: Reader(0.2), friedman),
    "wine, inputs too, 0.2": HonestCase(
        lambda: nn.Sequential(nn.Dropout(0.2), perceptron(0.2, 13, 40, 40, 3)), wine
    ),
    "moons, 0.3": HonestCase(lambda: perceptron(0.3, 2, 60, 60, 2), moons),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; no target is set."""
    given = sys.argv[1:] if argv is None else list(argv)
    found = argparse.ArgumentParser(f"python -m {MODULE}", description=__doc__)
    found.add_argument("--quick", action="store_true", help="a smoke test")
    found.add_argument("--output", type=Path, help="folder for the results")
    chosen = found.parse_args(given)
    names = list(CASES)[:1] if chosen.quick else list(CASES)
    n_seeds, draws = (4, DRAWS[:1]) if chosen.quick else (SEEDS, DRAWS)
    rows = [row for name in names for row in _rows(name, n_seeds, draws)]
    report = Report(f"Honest errors, {n_seeds} seeds", COLUMNS, rows, NOTES)
    report.show(console())
    folder = chosen.output or (None if chosen.quick else FOLDER)
    if folder is not None:
        store_markdown(folder / "honest.md", Provenance.now(MODULE, given), [report])
    return 0


def _rows(name: str, n_seeds: int, draws: Sequence[int]) -> Iterator[list[str]]:
    model, x, is_regression = CASES[name].trained()
    for n_draws in draws:
        squares = standardised_squares(model, x, n_draws, n_seeds, is_regression)
        shown = [f"{float(each):.2f}" for each in (squares.mean(), squares.max())]
        yield [name, str(n_draws), str(len(squares)), *shown]


def standardised_squares(
    model: nn.Module, x: Tensor, n_draws: int, n_seeds: int, is_regression: bool
) -> Tensor:
    """Mean over seeds of the square of (mean - truth) / error, of each output."""
    means, errors = [], []
    for seed in range(n_seeds):
        mc = MCDropout(model, seed=seed, analytic=False)
        if is_regression:
            drawn = mc.regress(x, n_draws=n_draws, precision=1.0)
            mean, error = drawn.mean, drawn.mean_error
        else:
            classes = mc.classify(x, n_draws=n_draws)
            mean, error = classes.probs, classes.mean_error
        means.append(mean.flatten())
        errors.append(error.flatten())
    all_means, all_errors = torch.stack(means), torch.stack(errors)
    truth = all_means.mean(0)
    squares = ((all_means - truth) / all_errors).square().mean(0)
    squares = squares * n_seeds / (n_seeds - 1)
    return squares if is_regression else squares[truth * (1 - truth) > CLEAR]


def _floats(values: object) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float32)


if __name__ == "__main__":
    raise SystemExit(main())
