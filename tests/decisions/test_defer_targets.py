"""Targets keep their promises: by hand, and over thousands of calibration sets."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from caveat.decisions import Costs, Coverage, ErrorRate
from caveat.decisions.defer_targets import EVERYBODY, NOBODY, clopper_pearson
from caveat.errors import InputTypeError, ParameterError
from caveat.evaluation import RiskCoverage

N_SETS = 600
TIED_RATES = np.array([0.05, 0.09, 0.17, 0.25])


def curve(scores: object, losses: object) -> RiskCoverage:
    return RiskCoverage.from_scores(scores, losses)


# ------------------------------------------------------------ error rate


@pytest.mark.parametrize(("errors", "rows"), [(0, 10), (3, 50), (49, 50)])
def test_limit_is_where_so_few_errors_are_improbable(errors, rows):
    upper = clopper_pearson(errors, rows, 0.05)
    assert binom.cdf(errors, rows, upper) == pytest.approx(0.05)


def test_limit_without_a_right_row():
    assert clopper_pearson(5, 5, 0.05) == clopper_pearson(0, 0, 0.05) == 1.0


def risk_linear(threshold: float) -> float:
    """True error rate of scores below a threshold, if the rate at s is 0.4 s."""
    return 0.2 * min(max(threshold, 0.0), 1.0)


def linear(generator: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    scores = generator.random(n)
    return scores, generator.random(n) < 0.4 * scores


def flat(generator: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A useless score; the rate is just above the target everywhere."""
    return generator.random(n), generator.random(n) < 0.1002


def wavy(generator: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The rate of error is not monotone: 0.2 below 0.1, 0 to 0.5, then 0.25."""
    scores = generator.random(n)
    rate = np.select([scores < 0.1, scores < 0.5], [0.2, 0.0], 0.25)
    return scores, generator.random(n) < rate


def risk_wavy(threshold: float) -> float:
    t = min(max(threshold, 0.0), 1.0)
    if t == 0.0:
        return 0.0
    return (0.2 * min(t, 0.1) + 0.25 * max(t - 0.5, 0.0)) / t


def tied(generator: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Four different scores, each with an error rate of its own."""
    scores = generator.integers(4, size=n).astype(float)
    return scores, generator.random(n) < TIED_RATES[scores.astype(int)]


def risk_tied(threshold: float) -> float:
    accepted = np.arange(4) <= threshold
    return float(TIED_RATES[accepted].mean()) if accepted.any() else 0.0


CASES = {
    "linear": (linear, risk_linear),
    "flat": (flat, lambda t: 0.1002 if t > 0 else 0.0),
    "wavy": (wavy, risk_wavy),
    "tied": (tied, risk_tied),
}


def broken_share(target: ErrorRate, case: str, n_rows: int) -> tuple[float, float]:
    """Shares of calibration sets whose policy breaks the rate, and that accept."""
    make, risk = CASES[case]
    generator = np.random.default_rng(7)
    broken = accepting = 0
    for _ in range(N_SETS):
        choice = target.choose(curve(*make(generator, n_rows)))
        broken += choice.met and risk(choice.threshold) > target.rate
        accepting += choice.met
    return broken / N_SETS, accepting / N_SETS


@pytest.mark.parametrize("case", CASES)
def test_the_rate_is_kept_with_the_confidence(case):
    target = ErrorRate(0.1, confidence=0.8, n_thresholds=10)
    broken, accepting = broken_share(target, case, n_rows=600)
    error = math.sqrt(0.2 * 0.8 / N_SETS)
    assert broken <= 0.2 + 4 * error
    if case != "flat":
        assert accepting > 0.5  # and it is of use


def test_without_the_correction_it_would_not_be():
    """The test above can fail: one limit at a time, tried ten times, is not enough."""

    class Naive:
        def __get__(self, target: ErrorRate, kind: object = None) -> float:
            return 1.0 - target.confidence

    target = ErrorRate(0.1, confidence=0.8, n_thresholds=10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ErrorRate, "_risk_each", Naive())
        broken, _ = broken_share(target, "flat", n_rows=600)
    assert broken > 0.2 + 4 * math.sqrt(0.2 * 0.8 / N_SETS)


def test_as_many_as_can_be_vouched_for():
    """Each wider threshold that was tried has a limit above the rate."""
    generator = np.random.default_rng(0)
    scores, errors = linear(generator, 1000)
    target = ErrorRate(0.1)
    choice = target.choose(curve(scores, errors))
    assert choice.met
    for limit in target._limits(scores, errors.astype(float)):
        assert (limit.upper <= 0.1) <= (limit.threshold <= choice.threshold)
    accepted = scores <= choice.threshold
    upper = clopper_pearson(int(errors[accepted].sum()), int(accepted.sum()), 0.05 / 10)
    assert upper <= 0.1
    assert f"accepts {accepted.sum()}, {errors[accepted].sum()} of them" in (
        choice.promise
    )


def test_no_error_at_all_accepts_all():
    choice = ErrorRate(0.05).choose(curve(np.arange(200.0), np.zeros(200)))
    assert choice.met and choice.threshold == EVERYBODY


def test_least_rows_are_least():
    target = ErrorRate(0.05)
    n = target.least_rows
    assert (
        clopper_pearson(0, n, 0.05 / 10) <= 0.05 < clopper_pearson(0, n - 1, 0.05 / 10)
    )
    assert target.choose(curve(np.arange(float(n)), np.zeros(n))).met
    few = target.choose(curve(np.arange(n - 1.0), np.zeros(n - 1)))
    assert not few.met and few.threshold == NOBODY
    assert f"{n} accepted rows" in few.promise and f"are {n - 1} cal" in few.promise


def test_a_rate_out_of_reach_is_said():
    generator = np.random.default_rng(0)
    choice = ErrorRate(0.01).choose(
        curve(generator.random(2000), generator.random(2000) < 0.3)
    )
    assert not choice.met and choice.threshold == NOBODY
    assert "Not met: no threshold keeps 1.00%" in choice.promise


def test_one_threshold_is_all_or_nothing():
    target = ErrorRate(0.1, n_thresholds=1)
    assert target.choose(curve(np.arange(99.0), np.zeros(99))).threshold == EVERYBODY


def test_infinite_scores_are_not_vouched_for():
    scores = np.concatenate([np.arange(300.0), np.full(100, np.inf)])
    errors = np.isinf(scores)
    choice = ErrorRate(0.05).choose(curve(scores, errors))
    assert choice.met and "accepts 300, 0 of them wrong" in choice.promise


def test_errors_are_zero_or_one():
    with pytest.raises(ParameterError, match=r"losses of 0 or 1.*off_by_more_than"):
        ErrorRate(0.05).choose(curve([1.0, 2.0], [0.5, 2.0]))


# ------------------------------------------------------------ coverage and costs


@pytest.mark.parametrize("share", [0.3, 0.8, 1.0])
def test_coverage_of_new_rows(share):
    generator = np.random.default_rng(1)
    found = []
    for _ in range(2000):
        known = generator.random(30)
        choice = Coverage(share).choose(curve(known, np.zeros(30)))
        assert choice.met
        found.append(min(choice.threshold, 1.0))  # scores are uniform
    error = np.std(found) / math.sqrt(2000)
    rank = math.ceil(round(31 * share, 9))
    assert abs(np.mean(found) - rank / 31) < 5 * error + 1e-12 or share == 1.0
    assert np.mean(found) >= share - 5 * error


def test_coverage_that_scores_do_not_allow():
    choice = Coverage(0.9).choose(curve([0.1, 0.2, np.inf, np.inf], np.zeros(4)))
    assert not choice.met and "only 2 have a finite score" in choice.promise


def test_costs_are_the_least_of_all_thresholds():
    generator = np.random.default_rng(0)
    scores = generator.integers(20, size=300) / 20
    losses = generator.random(300) * scores
    target = Costs(wrong=3.0, review=0.8)
    choice = target.choose(curve(scores, losses))

    def cost(threshold: float) -> float:
        return float(np.where(scores <= threshold, 3.0 * losses, 0.8).mean())

    every = [cost(t) for t in (NOBODY, *np.unique(scores))]
    assert cost(choice.threshold) == pytest.approx(min(every))
    assert f"{every[-1]:.3g} and deferring all 0.8" in choice.promise


def test_costs_may_accept_nobody_or_all():
    wrong = curve([0.1, 0.2], [1, 1])
    assert Costs(wrong=2.0, review=1.0).choose(wrong).threshold == NOBODY
    assert Costs(wrong=1.0, review=2.0).choose(wrong).threshold == 0.2
    assert Costs(wrong=1.0, review=1.0).choose(wrong).threshold == 0.2  # of equals


def test_costs_never_pay_for_infinite_scores():
    choice = Costs(wrong=1.0, review=9.0).choose(curve([0.1, np.inf], [0, 0]))
    assert choice.threshold == 0.1


@pytest.mark.parametrize(
    "make",
    [
        lambda: ErrorRate(0.0),
        lambda: ErrorRate(1.0),
        lambda: ErrorRate(0.1, confidence=1.0),
        lambda: ErrorRate(0.1, n_thresholds=0),
        lambda: Coverage(0.0),
        lambda: Coverage(1.1),
        lambda: Costs(wrong=-1.0, review=1.0),
        lambda: Costs(wrong=1.0, review=math.nan),
    ],
)
def test_targets_that_cannot_be(make):
    with pytest.raises(ParameterError):
        make()


def test_targets_are_numbers():
    with pytest.raises(InputTypeError, match="rate"):
        ErrorRate("2 %")
