"""Caveat beside torch-uncertainty and Baal, in time and in what they get right."""

import sys
from collections.abc import Callable, Mapping, Sequence

from benchmarks import options
from benchmarks.awkward import AWKWARD, Awkward
from benchmarks.naive import naive_moments
from benchmarks.options import Options
from benchmarks.ours import ask
from benchmarks.peers import PEERS, Peer
from benchmarks.results import Provenance, Report, console, store_markdown
from benchmarks.spread import N_DRAWS, Draw, caveat, outcome, true_spread
from benchmarks.tasks import Case, Moments
from benchmarks.timing import interleaved
from benchmarks.workloads import Workload

MODULE = "benchmarks.bench_peers"
TIMED = ("W1", "W4", "W6")
FOLDED_DRAWS = 5
"""Draws for peers that copy the batch T times: W1 at its full T takes 10 GB."""


def main(argv: Sequence[str] | None = None) -> int:
    """Time the peers that are installed, and try everyone on the awkward models."""
    given = sys.argv[1:] if argv is None else list(argv)
    chosen = options.parse(options.parser(MODULE, __doc__ or ""), given)
    absences = {peer.name: peer.absence() for peer in PEERS}
    reports = [_speed_report(chosen, absences), _spread_report(absences)]
    out = console()
    for report in reports:
        report.show(out)
    if chosen.folder is not None:
        provenance = Provenance.now(MODULE, given)
        store_markdown(chosen.folder / "peers.md", provenance, reports)
    return 0


def _speed_report(chosen: Options, absences: Mapping[str, str | None]) -> Report:
    present = [peer for peer in PEERS if absences[peer.name] is None]
    workloads = [w for w in chosen.workloads if w.name in TIMED]
    columns = [_speeds(workload, present, chosen) for workload in workloads]
    rows = [
        [name, *(column[name] for column in columns)]
        for name in ["naive loop", "Caveat", *(peer.name for peer in present)]
    ]
    rows += [[name, *([why] * len(columns))] for name, why in absences.items() if why]
    return Report(
        title="Seconds for all draws, and times faster than the naive loop",
        columns=["", *(f"{w.name}, T = {_draws(w, chosen)}" for w in workloads)],
        rows=rows,
        notes=[
            "In brackets the T that was run; the time is scaled to the full T.",
            *sorted({peer.version() for peer in PEERS}),
        ],
    )


def _draws(workload: Workload, chosen: Options) -> int:
    return workload.budget.quick if chosen.quick else workload.n_draws


def _speeds(
    workload: Workload, peers: Sequence[Peer], chosen: Options
) -> dict[str, str]:
    """Time everyone on one workload and return one cell for each."""
    case, full = workload.make(), _draws(workload, chosen)
    few = min(workload.budget.naive, full)
    draws = {"naive loop": few, "Caveat": full}
    functions: dict[str, Callable[[], object]] = {
        "naive loop": _naive(workload, few),
        "Caveat": lambda: ask(workload, case, full),
    }
    for peer in peers:
        draws[peer.name] = min(few, FOLDED_DRAWS) if peer.folds_draws else few
        functions[peer.name] = _peer(peer, case, draws[peer.name])
    times = interleaved(functions, repetitions=chosen.repetitions)
    scaled = {name: times[name].median * full / draws[name] for name in functions}
    return {
        name: f"{scaled[name]:.3f} s ({draws[name]}), "
        f"{scaled['naive loop'] / scaled[name]:.2f}x"
        for name in functions
    }


def _naive(workload: Workload, n_draws: int) -> Callable[[], object]:
    case = workload.make()
    workload.switch_on(case.model)
    return lambda: naive_moments(case, workload.task.read, n_draws=n_draws)


def _peer(peer: Peer, case: Case, n_draws: int) -> Callable[[], object]:
    draw = peer.prepare(case.model, n_draws)

    def run() -> Moments:
        draws = draw(*case.args)
        return Moments(draws.mean(0), draws.var(0))

    return run


def _spread_report(absences: Mapping[str, str | None]) -> Report:
    peers = [peer for peer in PEERS if not peer.folds_draws]
    tools: dict[str, Draw | str] = {"Caveat": caveat}
    for peer in peers:
        tools[peer.name] = absences[peer.name] or peer.draws
    return Report(
        title="Spread on awkward models (mean standard deviation over draws)",
        columns=["model, eval mode", "every site on", *tools],
        rows=[_spread_row(awkward, list(tools.values())) for awkward in AWKWARD],
        notes=[
            f"{N_DRAWS} draws; every site on: the plain loop in train mode with norms "
            "in eval mode.",
            "silent: neither an error nor a warning.",
        ],
    )


def _spread_row(awkward: Awkward, tools: Sequence[Draw | str]) -> list[str]:
    cells = [
        tool if isinstance(tool, str) else outcome(tool, awkward) for tool in tools
    ]
    return [awkward.name, f"{true_spread(awkward):.3f}", *cells]


if __name__ == "__main__":
    raise SystemExit(main())
