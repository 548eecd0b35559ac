"""Mixtures with several components: moments, start, and what is learned."""

import pytest
import torch
from torch import nn

from caveat import noise, theory
from caveat.errors import InputTypeError, ParameterError
from tests.noise.families import assert_draws_have, double, linear

SHARES = (0.2, 0.3, 0.5)


def moved(layer):
    """Wrapped, with means away from where they start."""
    wrapped = noise.Components(SHARES, std=0.5).wrap(layer)
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        wrapped.offsets.copy_(torch.randn(3, 2, 3, generator=generator).double())
    return wrapped


def covariance_of(means, weight):
    """Cov of (W, b): rows are independent, outputs of a row are not."""
    covariance = 0.5**2 * torch.eye(8).double()
    for j in range(3):
        second = torch.einsum(
            "l,lo,lp->op", double(SHARES), means[:, :, j], means[:, :, j]
        )
        own = [j, 3 + j]
        block = second - torch.outer(weight[:, j], weight[:, j])
        covariance[torch.tensor(own)[:, None], torch.tensor(own)] += block
    return covariance


def test_moments():
    family = noise.Components(SHARES, std=0.5)
    wrapped = moved(linear())
    means = wrapped.means.detach()
    covariance = covariance_of(means, wrapped.weight.detach())
    assert_draws_have(family, covariance, make=moved)


def test_the_weight_is_the_mean_of_the_means():
    wrapped = moved(linear())
    mean = torch.tensordot(double(SHARES), wrapped.means, 1)
    torch.testing.assert_close(mean, wrapped.weight)


def test_the_start_extends_dropout():
    layer = linear()
    two = noise.Components((0.3, 0.7), std=0.2).wrap(layer)
    torch.testing.assert_close(
        two.means, torch.stack([torch.zeros_like(layer.weight), layer.weight / 0.7])
    )
    three = noise.Components(SHARES, std=0.2).wrap(layer).means
    torch.testing.assert_close(three[1], three[2] / 2)
    torch.testing.assert_close(three[0], torch.zeros_like(three[0]))


def test_kl_of_two_components_lies_between_exact_and_proposition_1():
    layer, sd, length = linear(), 0.5, 0.6
    found = noise.Components((0.3, 0.7), sd).wrap(layer).kl(length)
    exact = noise.Mixture(0.3, sd).wrap(layer).kl(length)
    known = {"component_std": sd, "lengthscale": length}
    upper = theory.kl_row_upper_bound(
        layer.weight.T / 0.7, keep_prob=0.7, **known
    ).sum() + theory.kl_bias(layer.bias, **known)
    assert exact < found < upper


def test_each_row_has_a_component_of_its_own():
    wrapped = noise.Components(SHARES, std=1e-6).wrap(nn.Conv2d(4, 6, 3, groups=2))
    counts = torch.zeros(3)
    for _ in range(200):
        weight, _ = wrapped.sample()
        near = (weight - wrapped.means).abs() < 1e-4  # shape: (3, 6, 2, 3, 3)
        row = near.reshape(3, 2, 3, 2, 9).all(-1).all(2)  # (components, groups, units)
        assert (row.sum(0) == 1).all()
        counts += row.sum((1, 2))
    error = (double(SHARES) * (1 - double(SHARES)) / 800).sqrt()
    assert ((counts / 800 - double(SHARES)).abs() < 5 * error).all()


@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.6), (0.0, 1.0), (), (0.2, -0.2, 1)])
def test_bad_probabilities(shares):
    with pytest.raises(ParameterError, match="probabilities"):
        noise.Components(shares)


def test_bad_arguments():
    with pytest.raises(InputTypeError, match="probabilities"):
        noise.Components(("0.5", "0.5"))
    with pytest.raises(ParameterError, match="std"):
        noise.Components(SHARES, std=-1.0)
