"""DropConnect: every weight by itself, one mask a call."""

import torch
from torch import nn

from caveat import noise
from tests.noise.families import assert_draws_have, linear


def covariance(on_biases):
    layer = linear()
    spread = 0.3 / 0.7 * layer.weight.detach().square().flatten()
    biases = 0.3 / 0.7 * layer.bias.detach().square() * on_biases
    return torch.diag(torch.cat([spread, biases]))


def test_moments():
    assert_draws_have(noise.DropConnect(0.3), covariance(0.0))
    assert_draws_have(noise.DropConnect(0.3, on_biases=True), covariance(1.0))


def test_one_mask_serves_all_rows_of_a_call():
    wrapped = noise.DropConnect(0.5).wrap(nn.Linear(4, 3))
    y = wrapped(torch.ones(6, 4))
    assert len(y.unique(dim=0)) == 1
    assert not torch.equal(y, wrapped(torch.ones(6, 4)))


def test_kl_is_that_of_dropout():
    for on_biases in (False, True):
        layer = linear()
        found = noise.DropConnect(0.3, on_biases).wrap(layer).kl(0.5)
        twin = noise.Bernoulli(0.3, on_biases=on_biases).wrap(layer).kl(0.5)
        torch.testing.assert_close(found, twin)
    assert noise.DropConnect(0.3).wrap(linear()).drop_rate == 0.3
