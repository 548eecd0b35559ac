"""Stratified draws: the same law, less error, the same numbers in any order."""

import itertools

import pytest
import torch
from torch import nn

import caveat
from caveat import noise
from tests.statistics import assert_mean_is

X = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3)


def net(seed=0, rate=0.3):
    torch.manual_seed(seed)
    layers = [nn.Linear(3, 8), nn.Tanh(), nn.Dropout(rate), nn.Linear(8, 6), nn.Tanh()]
    return nn.Sequential(*layers, nn.Dropout(rate), nn.Linear(6, 2)).double()


def draws(model, n_draws, seed=0, x=X, **options):
    mc = caveat.MCDropout(model, seed=seed, stratified=True, **options)
    return mc.draws(x, n_draws=n_draws)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_what_is_additive_in_the_masks_has_the_error_of_exact_shares(rate):
    """Over 64 draws a unit is dropped ⌊64 p⌋ times, or once more."""
    units = 5
    model = nn.Sequential(nn.Dropout(rate), nn.Linear(units, 1, bias=False)).double()
    x = torch.ones(1, units, dtype=torch.float64)
    means = torch.stack([draws(model, 64, seed, x).mean() for seed in range(400)])
    share = 64 * rate % 1
    each = model[1].weight.detach().square().sum() / (64 * (1 - rate)) ** 2
    exact = float(each * share * (1 - share))
    plain = float(each * 64 * rate * (1 - rate))
    assert_mean_is(means, model[1].weight.detach().sum())
    found = float((means - model[1].weight.detach().sum()).square().mean())
    assert exact * 0.7 - 1e-18 < found < exact * 1.3 + 1e-18 < plain / 15


def test_the_mean_is_that_of_all_masks():
    model = net()
    keeps = list(itertools.product([0.0, 1.0], repeat=8 + 6))
    first, second = torch.tensor(keeps, dtype=torch.float64).split([8, 6], 1)
    weights = (0.7 ** torch.tensor(keeps).sum(1)) * 0.3 ** (
        14 - torch.tensor(keeps).sum(1)
    )
    h = torch.tanh(model[0](X[:1])) * first / 0.7
    h = torch.tanh(model[3](h)) * second / 0.7
    exact = (weights.double()[:, None] * model[6](h)).sum(0).detach()
    seeds = torch.stack([draws(model, 32, s, X[:1]).mean(0)[0] for s in range(300)])
    assert_mean_is(seeds, exact)


@pytest.mark.parametrize("shared", [True, False])
def test_numbers_do_not_depend_on_how_they_are_made(shared):
    model = net()
    whole = draws(model, 100, shared=shared)
    assert torch.equal(draws(model, 37, shared=shared), whole[:37])
    mc = caveat.MCDropout(model, seed=0, shared=shared, stratified=True)
    parts = mc.draws(X, n_draws=100, batch_size=3)
    torch.testing.assert_close(parts, whole, atol=1e-12, rtol=0)
    if shared:
        torch.testing.assert_close(mc.function(70)(X), whole[70], atol=1e-12, rtol=0)


def test_other_noise_is_stratified_too():
    model = nn.Sequential(noise.GaussianNoise(0.25), nn.Linear(4, 1, bias=False))
    model = model.double()
    x = torch.ones(1, 4, dtype=torch.float64)
    means = torch.stack([draws(model, 64, seed, x).mean() for seed in range(200)])
    assert_mean_is(means, model[1].weight.detach().sum())
    plain = 0.25 * float(model[1].weight.detach().square().sum()) / 64
    assert float(means.var()) < plain / 20


def test_stratified_draws_are_the_default():
    model = net()
    mc = caveat.MCDropout(model, seed=0)
    assert torch.equal(mc.draws(X, n_draws=20), draws(model, 20))
    plain = caveat.MCDropout(model, seed=0, stratified=False).draws(X, n_draws=20)
    assert torch.equal(mc.independent().draws(X, n_draws=20), plain)
    assert not torch.equal(draws(model, 20), plain)
    torch.testing.assert_close(mc.independent().function(7)(X), plain[7])


@pytest.mark.parametrize("stratified", [True, False])
def test_calls_in_a_block_are_the_same_draws(stratified):
    model = net()
    options = {"seed": 3, "stratified": stratified}
    with caveat.stochastic(model, **options), torch.no_grad():
        passes = torch.stack([model(X) for _ in range(20)])
    expected = caveat.MCDropout(model, **options).draws(X, n_draws=20)
    torch.testing.assert_close(passes, expected, atol=1e-12, rtol=0)


def test_repr_says_so():
    assert "independent" in repr(caveat.MCDropout(net(), seed=0, stratified=False))
    assert "independent" not in repr(caveat.MCDropout(net(), seed=0))
