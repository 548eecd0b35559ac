"""Factors without a pass are those of a pass."""

import pytest
import torch
from torch import nn

import caveat
from caveat.errors import InputTypeError
from caveat.noise import BernoulliNoise, GaussianNoise
from caveat.sampling.factors import unit_factors


@pytest.mark.parametrize("module", [nn.Dropout(0.3), GaussianNoise(0.4)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [1, 3, 5])
def test_factors_are_what_mcdropout_multiplies_by(module, dtype, rows):
    net = nn.Sequential(nn.Linear(5, 5, dtype=dtype), module)
    with torch.no_grad():
        net[0].weight.zero_()
        net[0].bias.fill_(1.0)
    x = torch.randn(rows, 5, dtype=dtype)
    expected = caveat.MCDropout(net, seed=11).draws(x, n_draws=9)
    found = unit_factors(module, "1", 5, seed=11, draws=range(9), dtype=dtype)
    assert found.dtype == dtype
    torch.testing.assert_close(found[:, None].expand(9, rows, 5), expected)


def test_any_range_of_draws_can_be_made_alone():
    module = nn.Dropout(0.3)
    whole = unit_factors(module, "2", 4, seed=1, draws=range(20))
    part = unit_factors(module, "2", 4, seed=1, draws=range(5, 12))
    assert torch.equal(part, whole[5:12])


@pytest.mark.parametrize(
    "module", [nn.Linear(2, 2), BernoulliNoise(0.1), GaussianNoise(0.1, spatial=True)]
)
def test_other_modules_are_refused(module):
    with pytest.raises(InputTypeError, match="MCDropout draws from any"):
        unit_factors(module, "0", 2, seed=0, draws=range(1))
