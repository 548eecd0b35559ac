"""Caveat as a user calls it: a new sampler, one call, default settings."""

from benchmarks.tasks import Case, Moments
from benchmarks.timing import seconds
from benchmarks.workloads import Workload
from caveat import MCDropout


def ask(workload: Workload, case: Case, n_draws: int) -> Moments:
    """Predict with Caveat and return mean and epistemic variance."""
    return workload.task.ask(MCDropout(case.model, seed=0), case, n_draws)


def cold_start(workload: Workload, *, n_draws: int = 2) -> float:
    """Seconds of the first call on a model that Caveat has never seen.

    The call asks for two draws only, so it is nearly all audit and recording.
    """
    case = workload.make()
    return seconds(lambda: ask(workload, case, n_draws))
