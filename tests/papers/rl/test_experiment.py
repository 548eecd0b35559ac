"""Figures 5 and 6 of paper 001: curves, the page, the run, and the stored result."""

import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from caveat.cli import main
from caveat.papers.records import read_records
from caveat.papers.rl.experiment import (
    FULL,
    QUICK,
    ThompsonSampling,
    batches_to,
    by_seed,
    smoothed,
    summarise,
)
from caveat.papers.rl.training import POLICIES, Reward

STORED = Path(__file__).parents[3] / "docs" / "results" / "rl.csv"


def n_records(plan):
    own = ThompsonSampling(Path(), quick=plan is QUICK)
    return sum(len(own.keys(job)) for job in own.jobs([]))


def test_the_curve_is_the_mean_of_the_last_thousand_rewards():
    rewards = np.arange(1.0, 9.0)[None]
    found = smoothed(rewards)
    expected = [np.mean(rewards[0, max(0, k - 4) : k + 1]) for k in range(8)]
    np.testing.assert_allclose(found[0], expected)
    np.testing.assert_array_equal(rewards[0], np.arange(1.0, 9.0))


def test_batches_count_from_the_end_of_burn_in():
    curve = np.array([2.0, 2.0, 0.5, 0.9, 1.0, 1.1, 0.9])
    assert batches_to(1.0, curve, burn_in=2) == 4
    assert batches_to(3.0, curve, burn_in=2) == math.inf
    assert batches_to(1.0, curve, burn_in=1) == 1


def test_by_seed_puts_each_reward_in_its_place():
    rewards = [Reward("a", s, b, 10.0 * s + b) for s in (0, 1) for b in (1, 2, 3)]
    np.testing.assert_array_equal(
        by_seed(rewards[::-1], "a"), [[1, 2, 3], [11, 12, 13]]
    )


def test_settings_are_those_of_the_paper():
    jobs = {policy: FULL.settings(policy) for policy in QUICK.n_batches}
    assert jobs["thompson_single"] == jobs["thompson"]
    assert jobs["thompson"].drop_rates == (0.0, 0.1, 0.1)
    assert jobs["thompson_inputs"].drop_rates == (0.1, 0.1, 0.1)
    assert jobs["epsilon_greedy"].drop_rates == (0.0, 0.0, 0.0)
    assert jobs["epsilon_greedy"].epsilon(100_000) == pytest.approx(0.507614213198)
    assert FULL.n_seeds >= 5 and FULL.burn_in == 25
    assert FULL.random_steps == 5_000 and FULL.learning_starts == 1_000


def test_page_says_what_the_numbers_say():
    def rewards(policy, at):
        """Above 1 from the batch ``at`` after burn-in on."""
        rng = np.random.default_rng(0)
        curve = np.where(np.arange(1, 301) > 25 + at, 1.05, 0.7)
        for seed in range(8):
            for batch, reward in enumerate(curve + 1e-4 * rng.normal(size=300), 1):
                yield Reward(policy, seed, batch, float(reward))
            yield Reward(policy + "_exploiting", seed, 1, 1.08 + 1e-4 * seed)

    def page(thompson, greedy):
        made = [*rewards("thompson", thompson), *rewards("epsilon_greedy", greedy)]
        others = ("thompson_inputs", "thompson_single", "epsilon_greedy_single")
        records = [*made, *(r for name in others for r in rewards(name, 9))]
        return "\n".join(map(str, ThompsonSampling(Path()).page(records)))

    good, bad, never = page(10, 150), page(100, 20), page(400, 400)
    assert "within 25 batches from burn-in: **holds**" in good
    assert "Epsilon greedy takes longer: **holds**" in good
    assert "within 25 batches from burn-in: **does not hold**" in bad
    assert "Epsilon greedy takes longer: **does not hold**" in bad
    assert "Epsilon greedy takes longer: **does not hold**." in never
    assert "| never | 25 | never (never to never) |" in never
    assert "because it still explores: **holds**" in good
    assert "8 of 8 agents earn more, +0.030 ± 0.000" in good
    assert "The best plateau is 1.050" in good


def test_a_policy_without_its_network_is_trained_again(tmp_path):
    own = ThompsonSampling(tmp_path, quick=True)
    known = {policy: own.keys(policy) for policy in POLICIES}
    assert not own.is_done("thompson", known["thompson"])
    assert own.is_done("epsilon_greedy", known["epsilon_greedy"])
    own.path("npz").touch()
    assert own.is_done("thompson", known["thompson"])
    assert not own.is_done("thompson", known["thompson"][:-1])


def test_command_line(tmp_path):
    command = ["reproduce", "rl", "--quick", "--workers", "1", "--output"]
    assert main([*command, str(tmp_path)]) == 0
    (page,) = (path.read_text() for path in tmp_path.glob("*.md"))
    assert "| Thompson, inputs dropped too | 10 |" in page
    stored = read_records(tmp_path / "rl_quick.csv", Reward)
    assert len(stored) == n_records(QUICK)
    assert (tmp_path / "rl_quick.png").stat().st_size > 10_000
    with Image.open(tmp_path / "rl_quick.gif") as gif:
        assert gif.n_frames == QUICK.n_frames and gif.size == (350, 250)
    assert not (tmp_path / "rl_quick_checkpoints").exists()
    before = (tmp_path / "rl_quick.npz").stat().st_mtime_ns
    assert main([*command, str(tmp_path)]) == 0  # drawn anew from the stored numbers
    assert (tmp_path / "rl_quick.npz").stat().st_mtime_ns == before
    assert [path.read_text() for path in tmp_path.glob("*.md")] == [page]


@pytest.fixture(scope="module")
def stored():
    if not STORED.exists():
        pytest.skip("docs/results/rl.csv is not there; made by `caveat reproduce rl`")
    rewards = read_records(STORED, Reward)
    return {p: summarise(rewards, p, burn_in=FULL.burn_in) for p in POLICIES}


def test_stored_run_is_a_full_one(stored):
    assert len(read_records(STORED, Reward)) == n_records(FULL)


def test_stored_thompson_is_much_faster(stored):
    """The claim: 25 batches against 175."""
    thompson, greedy = stored["thompson"], stored["epsilon_greedy"]
    assert thompson.crossing <= 25
    assert greedy.crossing >= 5 * thompson.crossing
    for fast, slow in zip(thompson.crossings, greedy.crossings, strict=True):
        assert fast < slow
