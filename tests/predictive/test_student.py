"""Student-t predictives against scipy, and as predictives like any other."""

import doctest

import matplotlib as mpl
import numpy as np
import pytest
import scipy.stats
import torch
from torch.testing import assert_close

from caveat.errors import CaveatWarning, ParameterError, ShapeError
from caveat.predictive import StudentPredictive, student

LOCATION = torch.tensor([0.5, -1.0, 2.0]).double()
SCALE = torch.tensor([1.0, 0.5, 3.0]).double()


def single(df: float = 5.0) -> StudentPredictive:
    return StudentPredictive.of(LOCATION, SCALE, noise_scale=0.4, df=df)


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


def test_few_degrees_of_freedom():
    with pytest.warns(CaveatWarning, match="has no variance"):
        assert bool(single(df=2.0).variance.isinf().all())
    with pytest.warns(CaveatWarning, match="has no variance"):
        assert bool(single(df=1.0).std.isnan().all())
    assert bool(single(df=2.0).mean.isfinite().all())
    assert bool(single(df=1.0).mean.isnan().all())
    lower, upper = single(df=1.0).interval()
    assert bool((lower < upper).all())


@pytest.mark.parametrize("df", [1e6, 1e8, 1e12, 1e15])
def test_a_density_of_many_degrees_of_freedom_is_nearly_the_normal_one(df):
    y = torch.tensor([0.1, 4.0, -7.0]).double()
    z = ((y - LOCATION) / SCALE).numpy()
    expected = scipy.stats.norm.logpdf(z) - np.log(SCALE.numpy())
    expected += (z**4 - 2 * z**2 - 1) / (4 * df)  # the first term of its series
    found = single(df).log_prob(y).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-12 + 1e6 / df**2)


def test_a_scale_of_zero_makes_a_point():
    none = torch.zeros(3).double()
    point = StudentPredictive.of(LOCATION, none, noise_scale=0.0, df=5.0)
    y = LOCATION + torch.tensor([0.0, 1.0, -1.0]).double()
    inf = torch.inf
    assert point.log_prob(y).tolist() == [inf, -inf, -inf]
    assert point.cdf(y).tolist() == [1.0, 1.0, 0.0]
    assert_close(torch.stack(point.interval()), LOCATION.expand(2, 3))
    assert not point.std.any()


def test_it_can_be_drawn():
    mpl.use("Agg")
    from caveat.evaluation import PredictiveDisplay

    display = PredictiveDisplay.from_predictive(single(), [2, 0, 1])
    assert_close(torch.from_numpy(display.mean), LOCATION[[1, 2, 0]])
    mpl.pyplot.close(display.figure_)


def test_repr():
    assert repr(single()).splitlines()[0] == "StudentPredictive: 3 rows, exact"
    assert "df" in repr(single(df=1.0))


def test_wrong_input():
    with pytest.raises(ShapeError, match=r"\(batch,\). Got \(3,\) and \(2,\)"):
        StudentPredictive.of(LOCATION, SCALE[:2], noise_scale=1.0, df=3.0)
    with pytest.raises(ParameterError, match=r"df must be finite and above 0\. Got -1"):
        StudentPredictive.of(LOCATION, SCALE, noise_scale=1.0, df=-1.0)
    for df in (0.0, float("nan"), float("inf")):
        with pytest.raises(ParameterError, match="df must be finite and above 0"):
            StudentPredictive.of(LOCATION, SCALE, noise_scale=1.0, df=df)
    with pytest.raises(ParameterError, match=r"scale must be 0 or above\. Got -3"):
        StudentPredictive.of(LOCATION, -SCALE, noise_scale=1.0, df=3.0)
    with pytest.raises(ParameterError, match="location must be finite"):
        StudentPredictive.of(LOCATION / 0.0, SCALE, noise_scale=1.0, df=3.0)
    with pytest.raises(ShapeError, match="y must have the shape"):
        single().log_prob(LOCATION[:2])


def test_examples():
    result = doctest.testmod(student)
    assert result.attempted > 0
    assert result.failed == 0
