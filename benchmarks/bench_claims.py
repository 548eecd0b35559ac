"""What docs/peers.md says of other libraries, shown by running them."""

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import caveat
from benchmarks import options, spread
from benchmarks.awkward import AWKWARD
from benchmarks.peers import PEERS
from benchmarks.results import Provenance, Report, console, store_markdown
from caveat.decisions import conformal

MODULE = "benchmarks.bench_claims"
LEVEL = 0.9


@dataclass(frozen=True)
class Claim:
    """A sentence, the package it is about, and a run that shows it."""

    package: str
    sentence: str
    show: Callable[[], str]

    def outcome(self) -> str:
        """What the run gave, or that the package is not there."""
        try:
            metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return "not installed"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self.show()
            except (ImportError, RuntimeError) as error:  # said, not taken for a result
                return f"fails: {type(error).__name__}: {str(error).splitlines()[0]}"


def rates_after_incerto() -> str:
    """Wrap a model by default, and look at its rates."""
    from incerto.bayesian import MCDropout

    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Dropout(0.25))
    before = [m.p for m in net if isinstance(m, nn.Dropout)]
    MCDropout(net)
    after = [m.p for m in net if isinstance(m, nn.Dropout)]
    return f"rates {before} became {after}"


def rates_after_caveat() -> str:
    """The same with Caveat."""
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Dropout(0.25))
    before = [m.p for m in net if isinstance(m, nn.Dropout)]
    caveat.MCDropout(net, seed=0).draws(torch.zeros(2, 4), n_draws=10)
    after = [m.p for m in net if isinstance(m, nn.Dropout)]
    return f"rates {before} {'stayed' if after == before else 'became'} {after}"


def fitted() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A regression network without dropout, and its rows."""
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        x = torch.linspace(-1, 1, 64)[:, None]
        y = torch.sin(3 * x) + 0.1 * torch.randn_like(x)
        net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
        optimiser = torch.optim.Adam(net.parameters(), lr=0.02)
        for _ in range(300):
            optimiser.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            optimiser.step()
    return net, x, y


def laplace_without_dropout() -> str:
    """A posterior of the last layer for a network that has no noise."""
    from laplace import Laplace

    net, x, y = fitted()
    found = Laplace(net, "regression", subset_of_weights="last_layer")
    found.fit(DataLoader(TensorDataset(x, y), batch_size=64))
    _, variance = found(torch.tensor([[0.0], [4.0]]))
    near, far = variance.flatten().sqrt().tolist()
    return f"standard deviation {near:.3f} at 0, {far:.3f} far away"


def caveat_without_dropout() -> str:
    """The same network, handed to Caveat."""
    net, x, _ = fitted()
    try:
        caveat.MCDropout(net).regress(x, precision=100.0)
    except caveat.errors.NoStochasticSiteError as error:
        return f"raises {type(error).__name__}"
    return "answers"


def widths_of_conformal() -> str:
    """Absolute residuals of one model, as intervals by MAPIE and by Caveat."""
    from mapie.regression import SplitConformalRegressor

    x, y = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(x[:150], y[:150])
    theirs = SplitConformalRegressor(model, confidence_level=LEVEL, prefit=True)
    theirs.conformalize(x[150:300], y[150:300])
    ends = theirs.predict_interval(x[300:])[1][:, :, 0]
    lower, upper = conformal(
        point(model, x[150:300]), y[150:300], level=LEVEL
    ).interval(point(model, x[300:]))
    ours = np.asarray(upper - lower).reshape(-1)
    inside = ((ends[:, 0] <= y[300:]) & (y[300:] <= ends[:, 1])).mean()
    return (
        f"widths {(ends[:, 1] - ends[:, 0]).mean():.2f} and {ours.mean():.2f}; "
        f"{inside:.0%} of {len(ends)} rows inside theirs"
    )


def point(model: LinearRegression, x: np.ndarray) -> caveat.GaussianPredictive:
    """A point prediction as a predictive of constant spread."""
    mean = torch.as_tensor(model.predict(x))[None, :, None]
    return caveat.GaussianPredictive.from_draws(mean, precision=1.0)


ATTENTION = (
    "nn.TransformerEncoder",
    "nn.MultiheadAttention(dropout=)",
    "HF BERT, attention dropout",
)
"""Models of `benchmarks.awkward` whose noise is that of attention, or fused with it."""


def spreads(draw: spread.Draw) -> str:
    """Spread over draws of models with attention, and that of the plain loop."""
    chosen = [awkward for awkward in AWKWARD if awkward.name in ATTENTION]
    found = (
        f"{awkward.name}: {spread.outcome(draw, awkward)} "
        f"(every site on: {spread.true_spread(awkward):.3f})"
        for awkward in chosen
    )
    return "; ".join(found)


def spread_by(package: str) -> str:
    """The same by a peer, in its form that does not copy the batch."""
    (peer,) = (p for p in PEERS if p.package == package and not p.folds_draws)
    return peer.absence() or spreads(peer.draws)


CLAIMS = (
    Claim("incerto", "incerto's MCDropout overwrites rates", rates_after_incerto),
    Claim("caveat", "Caveat leaves them", rates_after_caveat),
    Claim(
        "laplace-torch",
        "laplace-torch needs no dropout",
        laplace_without_dropout,
    ),
    Claim("caveat", "Caveat does", caveat_without_dropout),
    Claim(
        "torch-uncertainty",
        "torch-uncertainty skips attention",
        partial(spread_by, "torch-uncertainty"),
    ),
    Claim("baal", "Baal skips attention", partial(spread_by, "baal")),
    Claim("caveat", "Caveat finds it", partial(spreads, spread.caveat)),
    Claim("mapie", "MAPIE and Caveat conformalise alike", widths_of_conformal),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run every claim whose package is installed."""
    given = sys.argv[1:] if argv is None else list(argv)
    chosen = options.parse(options.parser(MODULE, __doc__ or ""), given)
    report = Report(
        title="Claims, run",
        columns=["claim", "outcome"],
        rows=[[claim.sentence, claim.outcome()] for claim in CLAIMS],
        notes=[_version(name) for name in sorted({c.package for c in CLAIMS})],
    )
    report.show(console())
    if chosen.folder is not None:
        store_markdown(
            chosen.folder / "claims.md", Provenance.now(MODULE, given), [report]
        )
    return 0


def _version(package: str) -> str:
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return f"{package}: not installed"


if __name__ == "__main__":
    raise SystemExit(main())
