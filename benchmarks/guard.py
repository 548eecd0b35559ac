"""Before anything is timed: do Caveat and the naive loop draw from one distribution?

Caveat runs on the rows of the timed call (its shortcuts depend on the size), the naive
loop on a handful of them; rows do not influence each other in any workload.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.naive import naive_draws
from benchmarks.ours import ask
from benchmarks.tasks import Case, Moments
from benchmarks.workloads import Workload

ROWS = 2
OUTPUTS = 8
REFERENCE = 4
"""Draws of the naive loop for each of ours: its rows are few, its kurtosis matters."""
LIMIT = 5.0
"""Standard errors; fails by chance less than once in a million comparisons."""


@dataclass(frozen=True)
class Verdict:
    """The largest deviation seen, in Monte Carlo standard errors."""

    mean_z: float
    variance_z: float
    n_draws: int
    problem: str | None = None
    """Why there is nothing to compare."""

    @property
    def ok(self) -> bool:
        """Tell whether both deviations are within the limit."""
        return self.problem is None and max(self.mean_z, self.variance_z) < LIMIT

    @property
    def word(self) -> str:
        """Return the verdict in a word."""
        return "OK" if self.ok else "FAIL"

    def __str__(self) -> str:
        z = f"mean z {self.mean_z:.1f}, variance z {self.variance_z:.1f}"
        return f"{self.word} ({z if self.problem is None else self.problem})"


def check(workload: Workload, *, n_draws: int) -> Verdict:
    """Compare means and variances of a few outputs of both, by z-tests."""
    try:
        moments = ask(workload, workload.make(workload.checked_rows), n_draws)
    except Exception as error:  # whatever went wrong is the verdict
        problem = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return Verdict(math.nan, math.nan, n_draws, problem)
    draws = _reference(workload, REFERENCE * n_draws)
    return compare(_few(moments), draws, n_draws=n_draws)


def compare(ours: Moments, draws: Tensor, *, n_draws: int) -> Verdict:
    """Compare moments over ``n_draws`` draws with the draws of the naive loop."""
    mean, variance = draws.mean(0), draws.var(0)
    if bool((ours.variance <= 0).any()) or bool((variance <= 0).any()):
        return Verdict(math.nan, math.nan, n_draws, "a spread of exactly 0")
    share = 1 / n_draws + 1 / len(draws)
    mean_error = torch.sqrt(share * (ours.variance + variance) / 2)
    # var(log s²) is about (kurtosis - 1) / T; logs keep the test symmetric at small T.
    # A sample's kurtosis is mostly too low, so it counts as a Gaussian's at least.
    kurtosis = ((draws - mean) ** 4).mean(0) / variance**2
    log_error = torch.sqrt(share * (kurtosis.clamp(min=3) - 1))
    return Verdict(
        mean_z=((ours.mean - mean) / mean_error).abs().max().item(),
        variance_z=((ours.variance / variance).log() / log_error).abs().max().item(),
        n_draws=n_draws,
    )


def _reference(workload: Workload, n_draws: int) -> Tensor:
    model, args, kwargs = workload.make(workload.checked_rows)
    workload.switch_on(model)
    few = Case(
        model,
        tuple(value[:ROWS] for value in args),
        {name: value[:ROWS] for name, value in kwargs.items()},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        draws = naive_draws(few, workload.task.read, n_draws=n_draws)
    return draws[..., :OUTPUTS].double()


def _few(moments: Moments) -> Moments:
    return Moments(*(value[:ROWS, ..., :OUTPUTS].double() for value in moments))
