"""MC dropout against ensembles: the jobs, the command and the stored result."""

from pathlib import Path

import numpy as np
import pytest

from caveat.cli import main
from caveat.errors import DataError
from caveat.papers.ensemble.averages import (
    by_network,
    gain,
    passes,
    select,
)
from caveat.papers.ensemble.choosing import STARTS, is_at_end, search
from caveat.papers.ensemble.comparison import (
    LONG,
    MC,
    N_MEMBERS,
    SHORT,
    STANDARD,
    Result,
    scores,
)
from caveat.papers.ensemble.experiment import FULL, Ensembles
from caveat.papers.ensemble.networks import LENET, MLP
from caveat.papers.records import read_records

RESULTS = Path(__file__).parents[3] / "docs" / "results" / "ensemble.csv"


def tried(job, value):
    kind = job.kind
    rates = kind.early_rate, kind.late_rate, kind.l2_penalty
    own = job.part, job.replicate, job.method, *rates
    n_passes = job.ways(FULL[kind.network])[0][1]
    return Result(kind.network, *own, n_passes, 10, 1, 0.0, value, 1.0)


def test_what_is_tested_is_chosen_by_the_search(tmp_path):
    """Its jobs, round by round, with a score that has its top at the start."""
    own, records = Ensembles(tmp_path), []
    starts = {kind for pair in STARTS.values() for kind in pair}
    jobs = own.jobs(records)
    assert starts < {job.kind for job in jobs}  # and two neighbours of each
    assert len(jobs) == 6 * FULL[MLP].n_tried + 6 * FULL[LENET].n_tried
    while not any(job.part == "test" for job in jobs):
        known = {key for record in records for key in [own.key(record)]}
        new = [job for job in jobs if not own.is_done(job, known)]
        assert new
        records += [tried(job, 0.0 if job.kind in starts else -1.0) for job in new]
        jobs = own.jobs(records)
    tests = [job for job in jobs if job.part == "test"]
    assert {job.kind for job in tests} == starts
    for name in (MLP, LENET):
        mine = [job for job in tests if job.kind.network == name]
        effort = FULL[name]
        assert len(mine) == 3 * effort.n_replicates
        keys = [key for job in mine for key in own.keys(job)]
        n_ways = 1 + len(effort.sizes) + 2 * N_MEMBERS
        assert len(set(keys)) == len(keys) == n_ways * effort.n_replicates


def test_a_kind_waits_for_all_its_networks(tmp_path):
    own = Ensembles(tmp_path)
    first = own.jobs([])
    some = [tried(job, 0.0) for job in first if job.replicate == 0]
    assert own.jobs(some) == first


def test_other_digits_are_for_smoke_tests_only(tmp_path, no_data):
    assert Ensembles(tmp_path, quick=True).images.name == "digits"
    with pytest.raises(DataError, match="needs MNIST, the images found are digits"):
        assert Ensembles(tmp_path).images


def test_command_line_without_data(tmp_path, no_data):
    args = ["reproduce", "ensemble", "--quick", "--workers", "1"]
    assert main([*args, "--output", str(tmp_path)]) == 0
    (page,) = (path.read_text() for path in tmp_path.glob("*.md"))
    assert "digits, 1,000 images to train on" in page
    assert (tmp_path / "ensemble_quick.png").stat().st_size > 10_000
    stored = read_records(tmp_path / "ensemble_quick.csv", Result)
    assert sum(r.part == "validation" for r in stored) == 2 * 2
    for own in by_network(stored).values():
        assert passes(own, LONG) == passes(own, SHORT) == [1, 2, 3, 4, 5]
        assert len(select(own, STANDARD, 1)) == 2


@pytest.fixture(scope="module", params=[MLP, LENET])
def stored(request):
    if not RESULTS.exists():
        pytest.skip(f"{RESULTS.name} is absent: run caveat reproduce ensemble")
    return by_network(read_records(RESULTS, Result))[request.param]


def test_stored_choices_are_better_than_their_neighbours(stored):
    """No choice is at an end, and all were made by held-out training images."""
    name = stored[0].network
    known = scores(stored, FULL[name].n_tried)
    chosen = {r.kind for r in stored if r.part == "test"}
    assert chosen == {search(start, known).chosen for start in STARTS[name]}
    assert not any(is_at_end(kind) for kind in chosen)


def test_stored_averaging_helps(stored):
    for method in (MC, LONG, SHORT):
        few, many = passes(stored, method)[0], passes(stored, method)[-1]
        for name in ("error", "log_likelihood"):
            found = gain(
                select(stored, method, many), select(stored, method, few), name
            )
            assert found.value > 0.0


def test_stored_mc_dropout_wins_at_equal_cost_of_training(stored):
    short = select(stored, SHORT, N_MEMBERS)
    found = gain(select(stored, MC, passes(stored, MC)[-1]), short, "log_likelihood")
    assert found.verdict == "MC dropout is better"


def test_stored_errors_are_those_of_such_networks(stored):
    errors = [r.error for r in stored if (r.part, r.method) == ("test", LONG)]
    low, high = {MLP: (0.01, 0.025), LENET: (0.005, 0.02)}[stored[0].network]
    assert low < np.mean(errors) < high
