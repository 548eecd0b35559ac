"""examples/bandits.py runs, and the stored run says what the page says."""

import runpy
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
STORED = ROOT / "docs" / "results" / "bandits.csv"
EXAMPLE = runpy.run_path(str(ROOT / "examples" / "bandits.py"))


def test_quick_run(tmp_path, capsys):
    before = dict(mpl.rcParams)
    arguments = ["--quick", "--workers", "1", "--output", str(tmp_path / "new")]
    EXAMPLE["main"](arguments)
    page = (tmp_path / "new" / "bandits_quick.md").read_text()
    assert page in capsys.readouterr().out
    assert "A smoke test" in page
    for words in EXAMPLE["PROBLEMS"].values():
        assert f"## {words[0].upper()}{words[1:]}" in page
    assert (tmp_path / "new" / "bandits_quick.png").stat().st_size > 10_000
    assert dict(mpl.rcParams) == before
    EXAMPLE["main"].__globals__["play"] = None  # all is there: nothing is run again
    EXAMPLE["main"](arguments)
    assert (tmp_path / "new" / "bandits_quick.md").read_text() == page


@pytest.fixture(scope="module")
def stored():
    if not STORED.exists():
        pytest.skip("docs/results/bandits.csv is absent: run examples/bandits.py")
    return EXAMPLE["read_records"](STORED, EXAMPLE["Record"])


def final(stored, problem, agent):
    return EXAMPLE["curves"](stored, problem)[agent].final


def test_the_stored_run_is_complete(stored):
    jobs = {record.job for record in stored}
    assert len(jobs) == len(stored)
    assert {r.problem for r in stored} == set(EXAMPLE["PROBLEMS"])
    assert {r.agent for r in stored} == set(EXAMPLE["AGENTS"])
    per_pair = len(stored) / len(EXAMPLE["PROBLEMS"]) / len(EXAMPLE["AGENTS"])
    assert per_pair >= 8


def test_uniform_agents_have_the_expected_regret(stored):
    for problem in EXAMPLE["PROBLEMS"]:
        found = final(stored, problem, "uniform")
        chance = [
            r.uniform
            for r in sorted(stored, key=lambda r: r.seed)
            if (r.problem, r.agent) == (problem, "uniform")
        ]
        gap = found - np.array(chance)
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        assert abs(gap.mean()) < 5 * error


def test_the_exact_posterior_wins_where_its_model_is_true(stored):
    thompson = final(stored, "linear", "linear, Thompson")
    for agent in ("linear, epsilon-greedy", "dropout f = 0.1, epsilon-greedy"):
        gap = thompson - final(stored, "linear", agent)
        assert gap.mean() < -2 * gap.std(ddof=1) / np.sqrt(len(gap))


def test_epsilon_greedy_wins_with_linear_models_on_digits(stored):
    gap = final(stored, "digits", "linear, epsilon-greedy") - final(
        stored, "digits", "linear, Thompson"
    )
    assert gap.mean() < -2 * gap.std(ddof=1) / np.sqrt(len(gap))


def test_which_draws_concentrate(stored):
    """By 4 from 100 to 1600 rounds, if as a posterior's."""
    path = STORED.with_name("bandits_spread.csv")
    spreads = EXAMPLE["read_records"](path, EXAMPLE["Spread"])

    def mean(model, n_rounds, what):
        own = [s for s in spreads if (s.model, s.n_rounds) == (model, n_rounds)]
        return np.mean([getattr(s, what) for s in own])

    def falls(model):
        return mean(model, 100, "sd") / mean(model, 1600, "sd")

    assert falls("linear") > 4
    assert falls("linear f = 0.2") > 4
    assert falls("dropout f = 0.1") < 1.5
    assert falls("dropout f = 0.3") < 1.5
    assert falls("dropout f = 0.3 falling") > 1.7
    assert mean("linear f = 0.2", 1600, "error") > 2 * mean("linear", 1600, "error")
