"""MC dropout against ensembles: arithmetic of the claims, page and stored result."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from caveat.cli import main
from caveat.errors import DataError
from caveat.papers.ensemble.comparison import (
    DROPOUT,
    LONG,
    MC,
    N_MEMBERS,
    PLAIN,
    SHORT,
    STANDARD,
    Result,
    trials,
)
from caveat.papers.ensemble.experiment import (
    FULL,
    Ensembles,
    gain,
    passes,
    select,
    share_of_gain,
)
from caveat.papers.records import read_records

RESULTS = Path(__file__).parents[3] / "docs" / "results" / "ensemble.csv"


def result(method, n_passes, error, replicate=0, log_likelihood=-0.1):
    return Result("test", replicate, method, "", n_passes, 10, 1, error, log_likelihood)


def test_what_is_tested_is_chosen_by_all_trials(tmp_path):
    own = Ensembles(tmp_path)
    settings = trials(FULL.n_tried)
    tried = [
        Result("validation", k, "", str(kind), 1, 10, 1, 0.0, -0.1 * place)
        for kinds in (PLAIN, DROPOUT)
        for place, kind in enumerate(kinds)
        for k in range(FULL.n_tried)
    ]
    assert own.jobs([]) == own.jobs(tried[:-1]) == settings
    tests = own.jobs(tried)[len(settings) :]
    assert {job.kind for job in tests} == {PLAIN[0], DROPOUT[0]}
    assert [job.replicate for job in tests] == [k for k in range(5) for _ in range(3)]
    keys = [key for job in tests for key in own.keys(job)]
    assert len(set(keys)) == len(keys) == 5 * (1 + len(FULL.sizes) + 2 * N_MEMBERS)


def test_other_digits_are_for_smoke_tests_only(tmp_path, no_data):
    assert Ensembles(tmp_path, quick=True).images.name == "digits"
    with pytest.raises(DataError, match="needs MNIST, the images found are digits"):
        assert Ensembles(tmp_path).images


def test_gains_are_paired_by_replicate():
    first = [result(MC, 5, 0.02, 0), result(MC, 5, 0.03, 1)]
    second = [result(LONG, 5, 0.01, 0), result(LONG, 5, 0.01, 1)]
    found = gain(first, second, "error")
    assert found.value == pytest.approx(-0.015)
    assert found.error == pytest.approx(0.005)
    assert found.verdict == "no difference at 95%"  # 3 errors, but two replicates
    assert replace(found, n_replicates=20).verdict == "the ensemble is better"
    assert replace(found, value=0.1, n_replicates=9).verdict == "MC dropout is better"
    same = replace(gain(first, second, "log_likelihood"), n_replicates=20)
    assert same.verdict == "no difference at 95%"
    plain = [result(LONG, 1, 0.05, k) for k in (0, 1)]
    assert share_of_gain([*first, *second, *plain], 5, "error") == pytest.approx(5 / 8)


def test_command_line_without_data(tmp_path, no_data):
    args = ["reproduce", "ensemble", "--quick", "--workers", "1"]
    assert main([*args, "--output", str(tmp_path)]) == 0
    (page,) = (path.read_text() for path in tmp_path.glob("*.md"))
    assert "digits, 1,000 images to train on" in page
    assert (tmp_path / "ensemble_quick.png").stat().st_size > 10_000
    stored = read_records(tmp_path / "ensemble_quick.csv", Result)
    assert sum(r.part == "validation" for r in stored) == len(PLAIN) + len(DROPOUT)
    assert passes(stored, LONG) == passes(stored, SHORT) == [1, 2, 3, 4, 5]
    assert len(select(stored, STANDARD, 1)) == 2
    nets = len(list((tmp_path / "lenet").glob("*.safetensors")))
    assert nets == len(PLAIN) + len(DROPOUT) + 2 * (1 + 2 * N_MEMBERS)


@pytest.fixture(scope="module")
def stored():
    if not RESULTS.exists():
        pytest.skip(f"{RESULTS.name} is absent: run caveat reproduce ensemble")
    return read_records(RESULTS, Result)


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
    for n_draws in (N_MEMBERS, passes(stored, MC)[-1]):
        for name in ("error", "log_likelihood"):
            found = gain(select(stored, MC, n_draws), short, name)
            assert found.verdict == "MC dropout is better"


def test_stored_ensemble_wins_at_equal_cost_of_testing(stored):
    """The paper's expectation fails here: the ensemble's likelihood is out of reach."""
    long = select(stored, LONG, N_MEMBERS)
    for n_draws in (N_MEMBERS, passes(stored, MC)[-1]):
        found = gain(select(stored, MC, n_draws), long, "log_likelihood")
        assert found.verdict == "the ensemble is better"
    assert 0.0 < share_of_gain(stored, passes(stored, MC)[-1], "log_likelihood") < 0.9


def test_stored_errors_are_those_of_perceptrons(stored):
    errors = [r.error for r in stored if (r.part, r.method) == ("test", LONG)]
    assert 0.01 < np.mean(errors) < 0.025
