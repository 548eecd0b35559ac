"""CRPS against closed forms, scoringrules, and samples."""

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.stats
import scoringrules
import torch
from scipy.integrate import quad, quad_vec

from caveat.evaluation.ranked import crps_of_rows
from caveat.predictive import (
    GaussianPredictive,
    StudentMixturePredictive,
    StudentPredictive,
    crps,
)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def gaussian(draws: torch.Tensor, precision: object = 4.0) -> GaussianPredictive:
    return GaussianPredictive.from_draws(draws, precision=precision)


def test_one_gaussian_in_closed_form():
    predictive = gaussian(torch.tensor([[1.0, 1.0]], dtype=torch.float64))
    z = np.array([0.0, 3.0])
    found = crps_of_rows(predictive, 1.0 + 0.5 * z)[:, 0]
    cdf = 0.5 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))
    pdf = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    expected = 0.5 * (z * (2 * cdf - 1) + 2 * pdf - 1 / math.sqrt(math.pi))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("n_draws", [3, 40, 300])
def test_mixture_is_that_of_scoringrules(generator, n_draws):
    draws = torch.randn(n_draws, 6, 2, generator=generator, dtype=torch.float64)
    y = 2 * torch.randn(6, 2, generator=generator, dtype=torch.float64)
    found = crps_of_rows(gaussian(draws), y)
    expected = scoringrules.crps_mixnorm(
        y.numpy(), draws.numpy(), np.full(draws.shape, 0.5), m_axis=0, backend="numpy"
    )
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_the_integral_is_as_good_as_the_pairs(generator):
    """Also with precisions that differ tenfold between draws."""
    centres = 3 * torch.randn(5, 60, generator=generator, dtype=torch.float64)
    widths = 0.2 + 2 * torch.rand(5, 60, generator=generator, dtype=torch.float64)
    n_points = crps._n_points(centres, widths)
    found = crps._spread_by_integral(centres, widths, n_points)
    expected = crps._spread_by_pairs(centres, widths)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


def test_parts_change_nothing(generator, monkeypatch):
    draws = torch.randn(200, 7, generator=generator, dtype=torch.float64)
    y = torch.zeros(7, dtype=torch.float64)
    whole = [crps_of_rows(gaussian(draws[:n]), y) for n in (20, 200)]
    monkeypatch.setattr(crps, "_AT_ONCE", 1)
    parts = [crps_of_rows(gaussian(draws[:n]), y) for n in (20, 200)]
    np.testing.assert_allclose(whole, parts, rtol=1e-12)


def test_a_precision_for_each_draw(generator):
    draws = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    tau = torch.rand(4, 3, generator=generator, dtype=torch.float64) + 0.1
    found = crps_of_rows(gaussian(draws, tau), [0.5, 0.0, -1.0])
    expected = scoringrules.crps_mixnorm(
        np.array([0.5, 0.0, -1.0]),
        draws.numpy().T,
        tau.rsqrt().numpy().T,
        backend="numpy",
    )
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-10)


def student(df: float = 5.0) -> StudentPredictive:
    location = torch.tensor([0.0, 1.0], dtype=torch.float64)
    scale = torch.tensor([1.0, 2.0], dtype=torch.float64)
    return StudentPredictive.of(location, scale, noise_scale=0.5, df=df)


def test_student_is_an_expectation_over_samples():
    generator = np.random.default_rng(0)
    found = crps_of_rows(student(), [0.3, -2.0])[:, 0]
    x = np.array([0.0, 1.0]) + np.array([1.0, 2.0]) * generator.standard_t(
        5.0, size=(200_000, 2)
    )
    terms = np.abs(x - [0.3, -2.0]) - 0.5 * np.abs(x - x[::-1])
    error = terms.std(0) / math.sqrt(len(x))  # pairs are used twice: too small
    assert (np.abs(terms.mean(0) - found) < 5 * math.sqrt(2) * error).all()


def test_a_mixture_of_one_student_is_a_student():
    one = student()
    mixture = StudentMixturePredictive.of(
        one.location[None],
        one.scale[None],
        torch.zeros(1, 2, dtype=torch.float64),
        noise_scale=0.5,
        df=5.0,
    )
    expected = crps_of_rows(one, [0.3, -2.0])
    found = crps_of_rows(mixture, [0.3, -2.0])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("size", [1e6, 1e9])
def test_a_wide_row_does_not_take_the_digits_of_the_others(size):
    mixture = StudentMixturePredictive.of(
        torch.tensor([[0.0, 0.0], [1e4, size]], dtype=torch.float64),
        torch.tensor([[1.0, size], [1.0, size]], dtype=torch.float64),
        torch.tensor([[0.99, 0.5], [0.01, 0.5]], dtype=torch.float64).log(),
        noise_scale=0.1,
        df=5.0,
    )
    y = [0.5, 0.1 * size]
    together = crps_of_rows(mixture, y)
    alone = [crps_of_rows(mixture[[row]], y[row : row + 1])[0] for row in (0, 1)]
    np.testing.assert_allclose(together, alone, rtol=1e-5)
    near, far = scipy.stats.t(5, 0, 1), scipy.stats.t(5, 1e4, 1)

    def cdf(x):
        return 0.99 * near.cdf(x) + 0.01 * far.cdf(x)

    parts = [(0.5, 50.0), (50.0, 9950.0), (9950.0, 10050.0), (10050.0, 2e4)]
    above = sum(quad(lambda x: (1 - cdf(x)) ** 2, *part)[0] for part in parts)
    below = quad(lambda x: cdf(x) ** 2, -np.inf, 0.5)[0]
    assert together[0] == pytest.approx(below + above, rel=1e-5)


def test_a_student_mixture_of_many_degrees_is_a_gaussian_mixture():
    centres = torch.tensor([[-1.0, 0.0], [2.0, 0.5]], dtype=torch.float64)
    half = torch.full((2, 2), 0.5, dtype=torch.float64)
    mixture = StudentMixturePredictive.of(
        centres, half, half.log(), noise_scale=0.1, df=1e7
    )
    found = crps_of_rows(mixture, [0.0, 3.0])
    np.testing.assert_allclose(
        found, crps_of_rows(gaussian(centres), [0.0, 3.0]), rtol=1e-5
    )


@pytest.mark.parametrize("df", [1.2, 3.0, 40.0, 1e6])
def test_student_is_that_of_scoringrules(df):
    y = np.array([0.3, -20.0])
    found = crps_of_rows(student(df), y)[:, 0]
    expected = scoringrules.crps_t(y, df, [0.0, 1.0], [1.0, 2.0], backend="numpy")
    np.testing.assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.parametrize("df", [0.6, 1.0, 1.0 + 1e-9, 1.0 + 1e-6, 1e12])
def test_student_is_the_integral_also_where_there_is_no_mean(df):
    with np.errstate(all="ignore"):
        law = scipy.stats.t(df, [0.0, 1.0], [1.0, 2.0])
    y = np.array([0.3, -2.0])

    def squares(step):
        return law.cdf(y - step) ** 2 + law.sf(y + step) ** 2

    ends = (0.0, 10.0, 1e3, np.inf)
    parts = [quad_vec(squares, *p, epsrel=1e-10)[0] for p in pairwise(ends)]
    found = crps_of_rows(student(df), y)[:, 0]
    np.testing.assert_allclose(found, sum(parts), rtol=1e-6)


def test_student_of_half_a_degree_of_freedom_has_an_infinite_score():
    assert np.isposinf(crps_of_rows(student(0.5), [0.3, -2.0])).all()


def test_students_without_scale_are_points():
    y = torch.tensor([0.3, -2.0]).double()
    location, none = torch.tensor([0.0, 1.0]).double(), torch.zeros(2).double()
    one = StudentPredictive.of(location, none, noise_scale=0.0, df=3.0)
    torch.testing.assert_close(one.crps(y), (y - location).abs())
    places = torch.stack([location, location + 1.0, location - 3.0])
    weights = torch.tensor([0.5, 0.2, 0.3]).double()
    logs = weights.log()[:, None].expand(3, 2)
    many = StudentMixturePredictive.of(
        places, torch.zeros(3, 2).double(), logs, noise_scale=0.0, df=3.0
    )
    apart = (places[:, None] - places[None]).abs()
    spread = torch.einsum("i,j,ijb->b", weights, weights, apart) / 2
    wanted = ((places - y).abs() * weights[:, None]).sum(0) - spread
    torch.testing.assert_close(many.crps(y), wanted)
