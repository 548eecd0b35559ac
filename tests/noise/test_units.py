"""Noise modules in a forward pass: shapes, axes, modes."""

import pytest
import torch
from torch import nn

from caveat import noise

MODULES = {
    "bernoulli": lambda **options: noise.BernoulliNoise(0.5, **options),
    "gaussian": lambda **options: noise.GaussianNoise(0.5, **options),
    "concrete": lambda axis=-1, spatial=True: noise.ConcreteNoise(0.5, axis=axis),
}
over_modules = pytest.mark.parametrize("kind", MODULES)


@over_modules
@pytest.mark.parametrize(
    ("shape", "axis", "constant"),
    [
        ((4, 9), -1, ()),
        ((4, 6, 9), -1, (1,)),
        ((4, 2, 6, 9), -1, (1, 2)),
        ((4, 9, 6, 5), -3, (2, 3)),
        ((9, 6, 5), -3, (1, 2)),
        ((9,), -1, ()),
    ],
)
def test_spatial_noise_is_constant_over_positions_only(kind, shape, axis, constant):
    noisy = MODULES[kind](spatial=True, axis=axis)(torch.ones(shape))
    assert noisy.shape == shape
    for dim in constant:
        assert (noisy.std(dim) == 0).all()
    for dim in set(range(len(shape))) - set(constant):
        assert noisy.std(dim).max() > 0


@pytest.mark.parametrize("kind", ["bernoulli", "gaussian"])
def test_other_noise_is_drawn_for_each_element(kind):
    noisy = MODULES[kind](spatial=False)(torch.ones(4, 6, 9))
    assert all(noisy.std(dim).max() > 0 for dim in range(3))


@over_modules
def test_evaluation_does_nothing(kind):
    x = torch.randn(3, 4, 5, 5)
    for spatial in (False, True):
        assert torch.equal(MODULES[kind](spatial=spatial, axis=-3).eval()(x), x)


@over_modules
def test_the_input_is_not_changed_and_has_a_gradient(kind):
    x = torch.randn(3, 4, requires_grad=True)
    before = x.detach().clone()
    y = MODULES[kind]()(x)
    y.sum().backward()
    assert torch.equal(x.detach(), before)
    torch.testing.assert_close(x.grad * before, y.detach())


def test_kl_of_the_weights_that_units_feed():
    """The same by hand as by a wrapped layer, but for the biases."""
    layer = nn.Linear(4, 3, bias=False)
    pairs = [
        (noise.BernoulliNoise(0.3), noise.Bernoulli(0.3)),
        (noise.GaussianNoise(0.3), noise.Gaussian(0.3)),
        (noise.ConcreteNoise(0.3), noise.Concrete(0.3)),
    ]
    for module, family in pairs:
        found = module.kl(layer.weight.T, 0.5)
        torch.testing.assert_close(found, family.wrap(layer).kl(0.5))


def test_what_is_printed():
    assert repr(noise.BernoulliNoise(0.25)) == (
        "BernoulliNoise(drop_rate=0.25, spatial=False, axis=-1)"
    )
    assert "variance=0.25" in repr(noise.GaussianNoise(0.25))
    assert "temperature=0.1" in repr(noise.ConcreteNoise(0.25))
    assert "std=0.1" in repr(noise.Mixture(0.2, 0.1).wrap(nn.Linear(2, 2)))
    assert "rank=3" in repr(noise.LowRank(3).wrap(nn.Linear(2, 2)))
    assert "on_biases=True" in repr(noise.DropConnect(0.2, True).wrap(nn.Linear(2, 2)))
    assert "probabilities=(0.1, 0.9)" in repr(
        noise.Components((0.1, 0.9)).wrap(nn.Linear(2, 2))
    )
