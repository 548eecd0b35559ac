"""Cdf and observations of a mixture; its density and quantiles are in test_gaussian."""

import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from caveat.predictive import mixture
from caveat.predictive import moments as moments_source
from tests.predictive.examples import random_draws
from tests.statistics import assert_mean_is, assert_variance_is


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_cdf_restated(own, block, monkeypatch):
    monkeypatch.setattr(moments_source, "BLOCK", block)
    draws, y = random_draws(30, 5, 2), random_draws(5, 2, seed=1)
    tau = random_draws(30, 5, 2, seed=2).exp() if own else torch.full((5, 2), 4.0)
    expected = stats.norm.cdf((y - draws) * tau.sqrt()).mean(0)
    assert_close(mixture.cdf(draws, tau.double(), y), torch.from_numpy(expected))


def test_observations_are_a_draw_and_its_noise():
    """Two draws far apart, one of them with next to no noise."""
    draws = torch.tensor([[[0.0, 0.0]], [[100.0, 200.0]]]).double()
    tau = torch.tensor([[[1.0, 4.0]], [[1e8, 1e8]]]).double()
    found = mixture.observations(draws, tau, 20_000, seed=0)[:, 0]
    second = found[:, 0] > 50
    assert_mean_is(second.double(), 0.5)
    assert torch.equal(second, found[:, 1] > 100)  # one draw for all outputs of a row
    noise = found[~second]
    assert_mean_is(noise, 0.0)
    assert_variance_is(noise, torch.tensor([1.0, 0.25]).double())
    assert_mean_is(noise[:, 0] * noise[:, 1], 0.0)
    assert_variance_is(found[second] - draws[1], 1e-8)


def test_standard_normal():
    found = mixture.standard_normal(20_000, (2, 3), seed=4)
    assert found.shape == (20_000, 2, 3) and found.dtype == torch.float64
    assert_mean_is(found, 0.0)
    assert_variance_is(found, 1.0)
    assert_mean_is(found[:, 0, 0] * found[:, 1, 2], 0.0)
    assert stats.kstest(found[:, 0, 0], "norm").pvalue > 1e-4


def test_a_quantile_does_not_wait_for_other_rows():
    """Steep rows need more turns than smooth ones, whose answer is then settled."""
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(50, 6, generator=generator, dtype=torch.float64)
    precision = torch.tensor([1.0, 1e8, 4.0, 1e10, 0.5, 1e4], dtype=torch.float64)
    together = mixture.quantiles(draws, precision, [0.05, 0.5, 0.95])
    for row in range(6):
        own = slice(row, row + 1)
        alone = mixture.quantiles(draws[:, own], precision[own], [0.05, 0.5, 0.95])
        torch.testing.assert_close(together[:, own], alone, rtol=0, atol=1e-12)
