"""Student-t predictives against scipy, and as predictives like any other."""

import doctest

import matplotlib as mpl
import numpy as np
import pytest
import scipy.stats
import torch
from torch.testing import assert_close

from caveat.errors import CaveatWarning, ParameterError, ShapeError
from caveat.predictive import (
    Predictive,
    StudentMixturePredictive,
    StudentPredictive,
    student,
)

LOCATION = torch.tensor([0.5, -1.0, 2.0]).double()
SCALE = torch.tensor([1.0, 0.5, 3.0]).double()


def single(df: float = 5.0) -> StudentPredictive:
    return StudentPredictive.of(LOCATION, SCALE, noise_scale=0.4, df=df)


def mixture(n_draws: int = 0, df: float = 5.0) -> StudentMixturePredictive:
    """Three components; the last has no weight in the first row."""
    steps = torch.tensor([[-1.0], [0.3], [2.0]]).double()
    weights = torch.tensor([[0.6, 0.2, 0.3], [0.4, 0.5, 0.3], [0.0, 0.3, 0.4]]).double()
    return StudentMixturePredictive.of(
        LOCATION + steps,
        SCALE * (1 + 0.1 * steps.abs()),
        weights.log(),
        noise_scale=0.4,
        df=df,
        n_draws=n_draws,
    )


def laws(predictive):
    return scipy.stats.t(
        predictive.df.numpy(), predictive.locations.numpy(), predictive.scales.numpy()
    )


def test_density_moments_and_quantiles_are_those_of_scipy():
    predictive, law = single(), scipy.stats.t(5.0, LOCATION.numpy(), SCALE.numpy())
    y = torch.tensor([0.1, 4.0, -7.0]).double()
    assert_close(predictive.log_prob(y), torch.from_numpy(law.logpdf(y.numpy())))
    assert_close(predictive.cdf(y), torch.from_numpy(law.cdf(y.numpy())))
    assert_close(predictive.mean, torch.from_numpy(law.mean()))
    assert_close(predictive.variance, torch.from_numpy(law.var()))
    assert_close(predictive.std, torch.from_numpy(law.std()))
    levels = [0.01, 0.5, 0.9]
    expected = torch.from_numpy(np.stack([law.ppf(q) for q in levels]))
    assert_close(predictive.quantile(levels), expected)
    assert_close(predictive.quantile(0.9), expected[2])
    lower, upper = predictive.interval(0.8)
    assert_close(
        predictive.cdf(upper) - predictive.cdf(lower), torch.full((3,), 0.8).double()
    )


def test_noise_and_epistemic_parts_add_up():
    predictive = single()
    assert_close(predictive.noise_variance, torch.full((3,), 0.16 * 5 / 3).double())
    total = predictive.epistemic_variance + predictive.noise_variance
    assert_close(total, predictive.variance)
    assert not predictive.mean_error.any()


def test_mixture_restated():
    predictive = mixture()
    law, weights = laws(predictive), predictive.log_weights.exp().numpy()
    y = torch.tensor([0.1, 4.0, -7.0]).double()
    density = (weights * law.pdf(y.numpy())).sum(0)
    assert_close(predictive.log_prob(y).exp(), torch.from_numpy(density))
    cdf = (weights * law.cdf(y.numpy())).sum(0)
    assert_close(predictive.cdf(y), torch.from_numpy(cdf))
    mean = (weights * law.mean()).sum(0)
    assert_close(predictive.mean, torch.from_numpy(mean))
    variance = (weights * (law.var() + (law.mean() - mean) ** 2)).sum(0)
    assert_close(predictive.variance, torch.from_numpy(variance))


def test_mixture_quantiles_are_roots_of_the_cdf():
    predictive = mixture()
    for level in (0.001, 0.3, 0.975):
        found = predictive.cdf(predictive.quantile(level))
        assert_close(
            found, torch.full((3,), level, dtype=torch.float64), rtol=1e-10, atol=0
        )


def test_mean_error_of_drawn_masks():
    assert not mixture().mean_error.any()
    assert bool(mixture(n_draws=1).mean_error.isinf().all())
    drawn = StudentMixturePredictive.of(
        torch.tensor([[1.0], [2.0], [6.0]]),
        torch.ones(3, 1),
        torch.full((3, 1), 1 / 3).log(),
        noise_scale=1.0,
        df=9.0,
        n_draws=3,
    )
    expected = torch.tensor([1.0, 2.0, 6.0]).std() / 3**0.5
    assert_close(drawn.mean_error, expected.reshape(1))


@pytest.mark.parametrize("make", [single, mixture])
def test_few_degrees_of_freedom(make):
    with pytest.warns(CaveatWarning, match="has no variance"):
        assert bool(make(df=2.0).variance.isinf().all())
    with pytest.warns(CaveatWarning, match="has no variance"):
        assert bool(make(df=1.0).std.isnan().all())
    assert bool(make(df=2.0).mean.isfinite().all())
    assert bool(make(df=1.0).mean.isnan().all())
    lower, upper = make(df=1.0).interval()
    assert bool((lower < upper).all())


@pytest.mark.parametrize("make", [single, mixture])
def test_it_is_a_predictive_like_any_other(make):
    whole = make()
    assert isinstance(whole, Predictive) and len(whole) == 3
    joined = type(whole).concatenate([whole[:1], whole[[1, 2]]])
    y = torch.zeros(3).double()
    assert torch.equal(joined.log_prob(y), whole.log_prob(y))
    assert_close(whole[2].log_prob(y[:1]), whole.log_prob(y)[2:])
    frame = whole.to_frame()
    assert list(frame.columns[:3]) == ["mean", "std", "variance"] and len(frame) == 3
    assert len(whole[:0].quantile([0.1, 0.9])[0]) == 0
    assert len(list(whole)) == 3


def test_it_can_be_drawn():
    mpl.use("Agg")
    from caveat.evaluation import PredictiveDisplay

    display = PredictiveDisplay.from_predictive([2, 0, 1], single())
    assert_close(torch.from_numpy(display.mean), LOCATION[[1, 2, 0]])
    mpl.pyplot.close(display.figure_)


def test_repr():
    assert repr(single()).splitlines()[0] == "StudentPredictive: 3 rows, exact"
    assert "StudentMixturePredictive: 3 rows, all masks" in repr(mixture())
    assert "3 rows, 50 masks" in repr(mixture(n_draws=50))
    assert "df" in repr(single(df=1.0))


def test_wrong_input():
    with pytest.raises(ShapeError, match=r"\(batch,\). Got \(3,\) and \(2,\)"):
        StudentPredictive.of(LOCATION, SCALE[:2], noise_scale=1.0, df=3.0)
    with pytest.raises(ShapeError, match="locations and log_weights"):
        StudentMixturePredictive.of(
            LOCATION[None], SCALE[None], SCALE, noise_scale=1.0, df=3.0
        )
    with pytest.raises(ParameterError, match=r"df must be 0 or above\. Got -1"):
        StudentPredictive.of(LOCATION, SCALE, noise_scale=1.0, df=-1.0)
    with pytest.raises(ShapeError, match="y must have the shape"):
        single().log_prob(LOCATION[:2])


def test_examples():
    result = doctest.testmod(student)
    assert result.attempted > 0
    assert result.failed == 0
