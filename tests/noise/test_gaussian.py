"""Multiplicative Gaussian noise: moments, and dropout's twin."""

import pytest
import torch

from caveat import noise
from caveat.errors import InputTypeError, ParameterError
from tests.noise.families import assert_draws_have, bernoulli_covariance, linear


def test_moments():
    assert_draws_have(noise.Gaussian(0.4), bernoulli_covariance(linear(), 0.4))


def test_matching_has_the_moments_of_dropout():
    twin = noise.Gaussian.matching(0.3)
    assert twin.variance == pytest.approx(0.3 / 0.7)
    assert_draws_have(twin, bernoulli_covariance(linear(), 0.3 / 0.7))
    assert noise.Gaussian.matching(0.3, spatial=True).spatial


def test_kl_restated():
    """theory.md 4: a row is m (1 + a eps); E32, row by row."""
    layer, variance, length = linear(), 0.4, 0.6
    expected = 0.5 * length**2 * layer.bias.square().sum()
    for j in range(3):
        square = layer.weight[:, j].square().sum()
        expected = expected + 0.5 * length**2 * (1 + variance) * square
        expected = expected - 0.5 * torch.log(variance * square)
    torch.testing.assert_close(
        noise.Gaussian(variance).wrap(layer).kl(length), expected
    )


def test_the_decay_part_is_that_of_the_dropout_it_matches():
    """1 + a = 1/p, so with the log of the volume put back the terms are equal."""
    layer, rate, length = linear(), 0.3, 0.6
    twin = noise.Gaussian.matching(rate)
    volume = 0.5 * torch.log(twin.variance * layer.weight.square().sum(0)).sum()
    torch.testing.assert_close(
        twin.wrap(layer).kl(length) + volume,
        noise.Bernoulli(rate).wrap(layer).kl(length),
    )


def test_bad_arguments():
    for make in (noise.Gaussian, noise.GaussianNoise):
        with pytest.raises(ParameterError, match="variance"):
            make(0.0)
        with pytest.raises(InputTypeError, match="variance"):
            make("0.1")
    with pytest.raises(ParameterError, match="drop_rate"):
        noise.Gaussian.matching(0.0)
    with pytest.raises(ParameterError, match="drop rate"):
        noise.Gaussian.matching(1.0)
