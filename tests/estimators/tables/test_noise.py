"""The law of the noise: its size, its tails, and where it depends on the row."""

import math

import numpy as np
import pytest
from scipy.stats import t as student

from caveat.estimators.tables.noise import SMALLEST, FarNoise, NoiseLaw, find_noise

N = 2000
ZERO, ONE = np.zeros(N), np.ones(N)


def test_gaussian_noise():
    errors = 0.3 * np.random.default_rng(0).normal(size=N)
    law = find_noise(errors, ZERO, ZERO, ONE)
    assert math.isinf(law.df) and law.strength == 0.0
    assert law.std == pytest.approx(0.3, rel=5 / math.sqrt(2 * N))


def test_what_the_draws_explain_is_not_noise():
    rng = np.random.default_rng(0)
    errors = math.hypot(0.3, 0.4) * rng.normal(size=N)
    law = find_noise(errors, np.full(N, 0.16), ZERO, ONE)
    assert law.std == pytest.approx(0.3, rel=0.15)


def test_heavy_tails_are_told():
    errors = np.random.default_rng(0).standard_t(2, size=N)
    law = find_noise(errors, ZERO, ZERO, ONE)
    assert law.df <= 3.0 and law.std == pytest.approx(1.0, rel=0.2)


def test_three_rows_do_not_set_the_noise():
    errors = np.random.default_rng(0).normal(size=N)
    errors[:3] = 1000.0
    assert find_noise(errors, ZERO, ZERO, ONE).std < 1.3


def test_noise_that_depends_on_the_row():
    rng = np.random.default_rng(0)
    logs = rng.normal(size=N)
    law = find_noise(np.exp(logs) * rng.normal(size=N), ZERO, logs, ONE)
    assert law.strength == 1.0
    told = find_noise(rng.normal(size=N), ZERO, logs, ONE)
    assert told.strength == 0.0


def test_few_rows_have_tails():
    errors = np.random.default_rng(0).normal(size=8)
    assert find_noise(errors, np.zeros(8), np.zeros(8), np.ones(8)).df <= 7.0


def test_factors_make_a_student():
    law = NoiseLaw(1.0, 0.0, 5.0)
    factors = law.factors(4000, np.random.default_rng(0))
    assert (1 / factors).mean() == pytest.approx(5 / 3, rel=0.03)
    assert (
        NoiseLaw(1.0, 0.0, math.inf).factors(3, np.random.default_rng(0)) == 1
    ).all()


def test_errors_of_zero_have_the_smallest_noise():
    law = find_noise(ZERO, ZERO, ZERO, ONE)
    assert law.scales(np.zeros(1))[0] <= 1e-3 * SMALLEST


def test_errors_of_rounding_are_told_as_such():
    errors = 1e-5 * np.random.default_rng(0).normal(size=N)
    assert find_noise(errors, ZERO, ZERO, ONE).std == pytest.approx(1e-5, rel=0.1)
    rounded = find_noise(errors, ZERO, ZERO, ONE, step=1.0)  # y is of whole numbers
    assert rounded.least == pytest.approx(SMALLEST, rel=0.05)


def inside(law, errors, level):
    """The share of errors in a central interval, and its standard error."""
    found = np.abs(errors) <= law.std * student.ppf(0.5 + 0.5 * level, law.df)
    return found.mean(), math.sqrt(level * (1.0 - level) / len(errors))


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
def test_a_law_holds_what_it_says_of_a_value_that_comes_again_and_again(level):
    """The most probable law has next to all of its mass there."""
    rng = np.random.default_rng(0)
    errors = np.where(rng.random(N) < 0.85, 1e-3, 1.0) * rng.exponential(size=N)
    share, error = inside(find_noise(errors, ZERO, ZERO, ONE), errors, level)
    assert share > level - 2.0 * error


def test_a_law_that_holds_what_it_says_is_the_most_probable_one(monkeypatch):
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=N), rng.standard_t(3, size=N)]
    found = [find_noise(errors, ZERO, ZERO, ONE) for errors in tables]
    monkeypatch.setattr("caveat.estimators.tables.noise._LEVELS", (1e-9,))
    assert found == [find_noise(errors, ZERO, ZERO, ONE) for errors in tables]


def answered(law, errors, number=400):
    """The mean log density of errors under a mixture of draws, as it is answered."""
    scales = law.std / np.sqrt(law.factors(number, np.random.default_rng(0)))
    logs = -0.5 * np.square(errors[:, None] / scales) - np.log(scales)
    logs -= 0.5 * math.log(2 * math.pi) + math.log(number)
    return np.logaddexp.reduce(logs, 1).mean()


@pytest.mark.parametrize("share", [0.01, 0.02])
def test_rows_beyond_all_tails_have_a_share_of_the_draws(share):
    rng = np.random.default_rng(0)
    is_far = rng.random(N) < share
    errors = np.where(is_far, 100.0, 1e-3) * rng.normal(size=N)
    law = find_noise(errors, ZERO, ZERO, ONE)
    assert isinstance(law, FarNoise)
    assert law.share == pytest.approx(is_far.mean(), rel=0.3)
    # What it says of itself is what draws answer, and no outlier is impossible.
    said = (law.log_density(errors / law.std) - math.log(law.std)).mean()
    assert answered(law, errors) == pytest.approx(said, abs=0.02)
    plain = NoiseLaw(law.std, law.strength, law.df)
    assert answered(plain, errors) < said - 1.0
    found, error = inside(law, errors, 0.9)
    assert found > 0.9 - 3 * error


@pytest.mark.parametrize("rows", [range(2), range(9)])
def test_a_few_mistyped_rows_do_not_make_the_variance_of_all(rows):
    errors = np.random.default_rng(0).normal(size=N)
    errors[list(rows)] = 1e4
    assert type(find_noise(errors, ZERO, ZERO, ONE)) is NoiseLaw


def test_tails_that_reach_all_rows_stay_as_they_are():
    errors = np.random.default_rng(0).standard_t(2, size=N)
    assert type(find_noise(errors, ZERO, ZERO, ONE)) is NoiseLaw
    assert FarNoise(1.0, 0.0, 3.0, 0.01, 50.0).factors(
        1, np.random.default_rng(0)
    ) == pytest.approx(NoiseLaw(1.0, 0.0, 3.0).factors(1, np.random.default_rng(0)))
