"""Concrete dropout: relaxed masks, the entropy, and rates that are learned."""

import math

import pytest
import torch
from scipy import integrate
from torch import nn

import caveat
from caveat import noise, theory
from caveat.errors import InputTypeError, ParameterError
from tests.noise.families import assert_draws_have, bernoulli_covariance, linear


def mask_moment(power, rate, temperature):
    """E z^power of the relaxed mask, by quadrature over u."""

    def integrand(u):
        logit = math.log((1 - rate) / rate) + math.log(u / (1 - u))
        return (1 / (1 + math.exp(-logit / temperature))) ** power

    return integrate.quad(integrand, 0, 1, points=[rate], limit=200)[0]


@pytest.mark.parametrize("temperature", [0.1, 0.5])
def test_moments_are_those_of_the_relaxed_mask(temperature):
    rate = 0.3
    mean = mask_moment(1, rate, temperature) / (1 - rate)
    second = mask_moment(2, rate, temperature) / (1 - rate) ** 2
    assert_draws_have(
        noise.Concrete(rate, temperature),
        bernoulli_covariance(linear(), second - mean**2),
        shrunk=mean,
    )


def test_cold_masks_are_dropout():
    assert_draws_have(
        noise.Concrete(0.3, temperature=1e-4),
        bernoulli_covariance(linear(), 0.3 / 0.7),
    )


# The entropy


def test_kl_is_that_of_theory_with_the_entropy():
    """Proposition 1 less H(p), less the constant in s; theory.md section 4."""
    layer, rate, sd, length = linear(), 0.3, 1e-4, 0.6
    known = {"component_std": sd, "lengthscale": length}
    constant = theory.kl_bias(torch.zeros(8).double(), **known)
    rows = layer.weight.T / (1 - rate)
    weights = theory.kl_row_lower_bound(rows, keep_prob=1 - rate, **known).sum()
    expected = weights + theory.kl_bias(layer.bias, **known) - constant
    torch.testing.assert_close(noise.Concrete(rate).wrap(layer).kl(length), expected)


def test_gradient_in_the_rate_by_differences_and_by_theory():
    layer, length, step = linear(), 0.6, 1e-5
    wrapped = noise.Concrete(0.3).wrap(layer)
    logit = wrapped.noise.logit_rate
    (found,) = torch.autograd.grad(wrapped.kl(length), logit)

    def kl_at(change):
        with torch.no_grad():
            logit.add_(change)
            value = wrapped.kl(length).item()
            logit.sub_(change)
        return value

    slope = (kl_at(step) - kl_at(-step)) / (2 * step)
    assert found.item() == pytest.approx(slope, rel=1e-7)

    keep = torch.sigmoid(-logit.detach()).requires_grad_()
    decay = 0.5 * length**2 * layer.weight.detach().square().sum() / keep
    term = decay - 3 * theory.mask_entropy(keep)
    (by_keep,) = torch.autograd.grad(term, keep)
    rate = wrapped.drop_rate.detach()
    assert found.item() == pytest.approx((-by_keep * rate * (1 - rate)).item())


def test_entropy_pulls_the_rate_to_one_half():
    """With weights of no size only -H(p) is left, smallest at 1/2."""
    for rate, sign in ((0.1, -1), (0.9, 1)):
        layer = nn.Linear(3, 2)
        nn.init.zeros_(layer.weight)
        wrapped = noise.Concrete(rate).wrap(layer)
        (slope,) = torch.autograd.grad(wrapped.kl(1.0), wrapped.noise.logit_rate)
        assert slope * sign > 0
        found = wrapped.kl(1.0) - 0.5 * layer.bias.square().sum()
        expected = -3 * theory.mask_entropy(1 - rate).float()
        torch.testing.assert_close(found, expected)


def test_entropy_counts_channels():
    """One mask a channel, whatever the kernel and the groups."""
    layer = nn.Conv2d(4, 6, 3, groups=2, bias=False)
    wrapped = noise.Concrete(0.2).wrap(layer)
    decay = noise.Bernoulli(0.2).wrap(layer).kl(0.5)
    expected = decay - 4 * theory.mask_entropy(0.8).float()
    torch.testing.assert_close(wrapped.kl(0.5), expected)


# Learning


def learned_rate(n_rows):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n_rows, 4, generator=generator)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5], [1.0]])
    y = y + 0.5 * torch.randn(n_rows, 1, generator=generator)
    layer = nn.Linear(4, 1)
    wrapped = noise.Concrete(0.3).wrap(layer)
    optimiser = torch.optim.Adam(wrapped.parameters(), lr=0.04)
    for _ in range(250):
        optimiser.zero_grad()
        error = (wrapped(x) - y).square().sum(1).mean()
        (4.0 / 2 * n_rows * error + noise.kl(wrapped, 0.1)).backward()
        optimiser.step()
    return wrapped.drop_rate.item()


def test_the_rate_falls_as_data_come_in():
    few, some, many = (learned_rate(n) for n in (2, 20, 500))
    assert few > some > many
    assert few > 0.05
    assert many < 0.01


def test_without_data_the_rate_settles_where_the_kl_is_least():
    """d/df of l²|W|²/(2(1-f)) - K H(f) = 0 with |W| held: checked on a grid."""
    layer = linear()
    layer.requires_grad_(False)
    wrapped = noise.Concrete(0.1).wrap(layer)
    optimiser = torch.optim.Adam([wrapped.noise.logit_rate], lr=0.05)
    for _ in range(400):
        optimiser.zero_grad()
        wrapped.kl(0.5).backward()
        optimiser.step()
    rates = torch.linspace(0.001, 0.999, 9999).double()
    decay = 0.5 * 0.25 * layer.weight.square().sum() / (1 - rates)
    values = decay - 3 * theory.mask_entropy(1 - rates)
    best = rates[values.argmin()].item()
    assert wrapped.drop_rate.item() == pytest.approx(best, abs=1e-3)


# Odds and ends


def test_each_layer_has_its_own_rate():
    with pytest.warns(caveat.errors.CaveatWarning):
        net = noise.insert(
            nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), noise.Concrete()
        )
    rates = [p for name, p in net.named_parameters() if "logit_rate" in name]
    assert len(rates) == 2
    assert rates[0] is not rates[1]


def test_extreme_rates_stay_finite():
    layer = noise.Concrete(0.5).wrap(nn.Linear(3, 2))
    for logit in (-60.0, 60.0):
        with torch.no_grad():
            layer.noise.logit_rate.fill_(logit)
        layer.zero_grad()
        kl = layer.kl(1.0)
        assert kl.isfinite()
        kl.backward()
        assert layer.noise.logit_rate.grad.isfinite()


def test_half_precision():
    wrapped = noise.Concrete(0.3).wrap(nn.Linear(8, 4)).to(torch.bfloat16)
    y = wrapped(torch.ones(500, 8, dtype=torch.bfloat16))
    assert y.dtype == torch.bfloat16
    assert y.isfinite().all()


def test_bad_arguments():
    for make in (noise.Concrete, noise.ConcreteNoise):
        with pytest.raises(ParameterError, match="initial_rate"):
            make(0.0)
        with pytest.raises(ParameterError, match="temperature"):
            make(0.1, temperature=0.0)
        with pytest.raises(InputTypeError, match="initial_rate"):
            make("0.1")


def test_the_audit_shows_the_rate_that_was_learned():
    layer = noise.Concrete(initial_rate=0.2).wrap(nn.Linear(3, 2))
    with torch.no_grad():
        layer.noise.logit_rate.fill_(0.0)
    (site,) = caveat.audit(layer, torch.ones(4, 3))
    assert (site.kind, site.rate) == ("concrete dropout", 0.5)
