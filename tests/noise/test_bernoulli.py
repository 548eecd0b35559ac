"""Bernoulli noise against enumeration, closed forms and nn.Dropout."""

import math

import pytest
import torch
from torch import nn

import caveat
from caveat import noise, theory
from caveat.errors import InputTypeError, ParameterError
from tests.noise.families import (
    assert_draws_have,
    bernoulli_covariance,
    double,
    linear,
)
from tests.statistics import assert_mean_is, assert_variance_is


def three_units(first, last, scale=(1.0, 1.0)):
    """The net of theory.md section 13, with these families on its layers."""
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).double()
    with torch.no_grad():
        weight = double([[0.5, -1.0], [1.0, 0.5], [-0.5, 1.5]])
        net[0].weight.copy_(scale[0] * weight)
        net[0].bias.copy_(double([0.1, -0.2, 0.0]))
        net[2].weight.copy_(scale[1] * double([[1.0, -2.0, 0.5]]))
        net[2].bias.copy_(double([0.25]))
    return nn.Sequential(first.wrap(net[0]), net[1], last.wrap(net[2]))


@pytest.mark.parametrize(
    ("scale", "mean", "variance", "averaged"),
    [
        ((1.0, 1.0), 1.11, 4.074844444444445, 1.25),  # inverted dropout
        ((0.9, 0.5), 0.66, 1.0184, 0.725),  # unscaled masks: W = p M
    ],
)
@pytest.mark.parametrize("training", [True, False])
def test_three_unit_net(scale, mean, variance, averaged, training):
    """theory.md section 13, exact over all masks; tau = 4."""
    net = three_units(noise.Bernoulli(0.1), noise.Bernoulli(0.5), scale)
    net.train(training)
    x = double([[1.0, -1.0]])
    draws = caveat.MCDropout(net, seed=5).draws(x, n_draws=6000)
    assert_mean_is(draws, mean)
    assert_variance_is(draws, variance - 0.25)
    assert net.eval()(x).item() == pytest.approx(averaged)


def test_a_narrow_mixture_is_the_same_net():
    """As s -> 0 paper 000's mixture is dropout."""
    net = three_units(noise.Mixture(0.1, std=1e-9), noise.Mixture(0.5, std=1e-9))
    draws = caveat.MCDropout(net, seed=5).draws(double([[1.0, -1.0]]), n_draws=6000)
    assert_mean_is(draws, 1.11)
    assert_variance_is(draws, 4.074844444444445 - 0.25)


@pytest.mark.parametrize(
    ("sigma", "passes"),
    [(torch.relu, True), (torch.tanh, True), (torch.sigmoid, False)],
)
def test_masks_pass_through_nonlinearities_that_are_0_at_0(sigma, passes):
    """Units dropped after sigma, or their weights and biases before it (000, 4.1)."""
    layer, x = linear(), double([[0.3, -1.0, 2.0], [1.0, 0.5, -0.2]])
    mask = double([1.0, 0.0])
    before = sigma(
        nn.functional.linear(x, mask[:, None] * layer.weight, mask * layer.bias)
    )
    assert torch.equal(sigma(layer(x)) * mask, before) is passes


def test_division_while_training_is_a_larger_start_but_another_step():
    """000, section 2.1: (x z / p) W is x z M for M = W / p; a step of M is 1 / p²."""
    keep, rate, x = 0.6, 0.1, double([[1.0, -2.0, 0.5]])
    mask, weight = double([1.0, 0.0, 1.0]), double([[0.4], [1.0], [-0.7]])
    stored = weight.clone().requires_grad_()
    plain = (weight / keep).requires_grad_()
    outputs = (x * mask / keep) @ stored, (x * mask) @ plain
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(x @ stored, x @ (keep * plain))  # at test time
    for output in outputs:
        (0.5 * (output - 2.0).square().sum()).backward()
    steps = rate * stored.grad / keep, rate * plain.grad  # both of M
    torch.testing.assert_close(steps[0], steps[1] / keep**2)


def test_masks_of_pixels_are_no_masks_of_weights():
    """One weight of a convolution serves all pixels: one mask of it hits them all."""
    layer = nn.Conv1d(1, 1, 1, bias=False).double()
    x = torch.ones(1, 1, 9).double()
    for spatial in (True, False):
        draws = caveat.MCDropout(
            noise.Bernoulli(0.5, spatial=spatial).wrap(layer), seed=0
        ).draws(x, n_draws=50)
        of_weights = (draws == draws[..., :1]).all()
        assert bool(of_weights) is spatial


def test_moments_on_units():
    assert_draws_have(noise.Bernoulli(0.3), bernoulli_covariance(linear(), 0.3 / 0.7))


def test_moments_with_biases():
    layer = linear()
    covariance = bernoulli_covariance(layer, 0.3 / 0.7)
    covariance[[6, 7], [6, 7]] = 0.3 / 0.7 * layer.bias.detach().square()
    assert_draws_have(noise.Bernoulli(0.3, on_biases=True), covariance)


def test_spatial_moments_of_a_convolution():
    """Channels lost as a whole: Var of a pixel is f/p times squared shares."""
    layer = nn.Conv2d(3, 2, 2, bias=False).double()
    x = torch.randn(1, 3, 3, 3).double()
    draws = caveat.MCDropout(noise.Bernoulli(0.3, spatial=True).wrap(layer), seed=2)
    shares = torch.stack(
        [layer(x * torch.eye(3).double()[c].view(1, 3, 1, 1)) for c in range(3)]
    )
    found = draws.draws(x, n_draws=6000)
    assert_mean_is(found, layer(x).detach())
    assert_variance_is(found, (0.3 / 0.7 * shares.square().sum(0)).detach())


def test_masks_are_drawn_for_each_row_in_training():
    wrapped = noise.Bernoulli(0.5, on_biases=True).wrap(nn.Linear(30, 30))
    y = wrapped(torch.ones(40, 30))
    assert len(y.unique(dim=0)) == 40


@pytest.mark.parametrize(
    ("layer", "shape", "positions"),
    [(nn.Linear(2, 30), (8, 5, 2), (1,)), (nn.Conv2d(2, 30, 1), (8, 2, 4, 5), (2, 3))],
    ids=["sequences", "images"],
)
def test_a_bias_is_lost_at_all_positions_of_a_row(layer, shape, positions):
    nn.init.zeros_(layer.weight)
    y = noise.Bernoulli(0.5, on_biases=True).wrap(layer)(torch.randn(shape))
    assert (y.amax(positions) == y.amin(positions)).all()
    assert len(y.flatten(1).unique(dim=0)) == 8
    lost = (y == 0).float().mean().item()
    assert abs(lost - 0.5) < 5 * 0.5 / math.sqrt(8 * 30)


def test_a_trained_dropout_net_reads_the_same():
    """Same generator, same numbers as nn.Dropout before the layer."""
    layer, x = nn.Linear(4, 3), torch.randn(5, 4)
    plain = nn.Sequential(nn.Dropout(0.4), layer)
    wrapped = noise.Bernoulli(0.4).wrap(layer)
    torch.manual_seed(1)
    expected = plain(x)
    torch.manual_seed(1)
    assert torch.equal(wrapped(x), expected)


@pytest.mark.parametrize("on_biases", [False, True])
def test_kl_is_that_of_theory_without_constants(on_biases):
    keep, sd, length = 0.7, 1e-4, 0.6
    layer = linear()
    known = {"component_std": sd, "lengthscale": length}
    constant = theory.kl_bias(torch.zeros(8).double(), **known)
    bias = theory.kl_bias(layer.bias, **known)
    if on_biases:
        bias = theory.kl_row_upper_bound(
            layer.bias[:, None] / keep, keep_prob=keep, **known
        ).sum()
    weights = theory.kl_row_upper_bound(
        layer.weight.T / keep, keep_prob=keep, **known
    ).sum()
    found = noise.Bernoulli(0.3, on_biases=on_biases).wrap(layer).kl(length)
    torch.testing.assert_close(found, weights + bias - constant)


def test_nothing_is_dropped_at_rate_zero():
    layer, x = nn.Linear(4, 3), torch.randn(5, 4)
    assert torch.equal(noise.Bernoulli(0.0).wrap(layer)(x), layer(x))


@pytest.mark.parametrize("rate", [1.0, -0.1, math.nan, math.inf])
def test_bad_rates(rate):
    for make in (noise.Bernoulli, noise.BernoulliNoise, noise.DropConnect):
        with pytest.raises(ParameterError, match=r"\[0, 1\)"):
            make(rate)


@pytest.mark.parametrize("rate", ["0.1", None, True])
def test_rates_of_the_wrong_kind(rate):
    with pytest.raises(InputTypeError, match="must be a number"):
        noise.Bernoulli(rate)


def test_the_audit_names_the_rate():
    wrapped = noise.Bernoulli(0.3).wrap(nn.Linear(4, 3))
    (site,) = caveat.audit(wrapped, torch.ones(2, 4))
    assert (site.path, site.rate, site.mask_shape) == ("noise", 0.3, (1, 4))
    assert wrapped.drop_rate == 0.3
