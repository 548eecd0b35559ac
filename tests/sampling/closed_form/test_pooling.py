"""Pooling of uncertain images, against sampling of independent Gaussian pixels."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import caveat
from caveat import MCDropout
from caveat.errors import UnsupportedModelError
from tests.sampling.closed_form.nets import numbers

X = 2.0 + numbers(2, 2, 6, 6)


class NoisyImages(nn.Module):
    """Pixels times N(1, a), then pooling."""

    def __init__(self, pool: nn.Module):
        super().__init__()
        self.noise = caveat.noise.GaussianNoise(0.2)
        self.pool = pool
        self.trained = nn.Parameter(torch.ones(()))  # a model must have some

    def forward(self, x):
        return self.pool(self.noise(x))


LINEAR = (
    nn.AvgPool2d(2),
    nn.AvgPool2d(3, stride=2, padding=1),
    nn.AdaptiveAvgPool2d(1),
    nn.AdaptiveAvgPool2d((2, 3)),
)
LARGEST = (
    nn.MaxPool2d(2),
    nn.MaxPool2d(3, stride=2, padding=1),
    nn.MaxPool2d((2, 3)),
)


@pytest.mark.parametrize("pool", LINEAR, ids=str)
def test_averages_are_exact(pool):
    model = NoisyImages(pool)
    found = MCDropout(model).moments(X)
    assert found.exact
    assert torch.allclose(found.mean, pool(X))
    draws = MCDropout(model, seed=0).draws(X, n_draws=3000)
    assert torch.allclose(found.variance, draws.var(0), rtol=0.2)


@pytest.mark.parametrize("pool", LARGEST, ids=str)
def test_largest_is_close(pool):
    """Pairs are taken as Gaussian, which their maximum is not quite."""
    model = NoisyImages(pool)
    found = MCDropout(model).moments(X)
    draws = MCDropout(model, seed=0).draws(X, n_draws=3000)
    assert found.method == "propagated"
    assert ((found.mean - draws.mean(0)) / draws.std(0)).abs().max() < 0.15
    # 0.15 of the approximation, and five errors of a standard deviation of 3000 draws.
    assert (found.std / draws.std(0) - 1).abs().max() < 0.15 + 5 / 6000**0.5


def test_certain_images_are_pooled_as_they_are():
    """A noise that is nearly nothing leaves plain max pooling."""
    model = NoisyImages(nn.MaxPool2d(3, stride=1))
    model.noise = caveat.noise.GaussianNoise(1e-14)
    found = MCDropout(model).moments(X)
    assert torch.allclose(found.mean, F.max_pool2d(X, 3, stride=1), atol=1e-6)


@pytest.mark.parametrize(
    "pool",
    [
        nn.MaxPool2d(2, dilation=2),
        nn.MaxPool2d(4, ceil_mode=True),
        nn.AvgPool2d(4, ceil_mode=True),
        nn.AvgPool2d(2, padding=1, count_include_pad=False),
        nn.AdaptiveAvgPool2d(4),
    ],
    ids=str,
)
def test_unusual_pooling_is_refused(pool):
    with pytest.raises(UnsupportedModelError, match="module 'pool' of NoisyImages"):
        MCDropout(NoisyImages(pool)).moments(X)
