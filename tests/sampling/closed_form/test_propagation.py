"""Moments carried along a tape: exact where they should be, close elsewhere."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import caveat
from caveat import MCDropout
from tests.sampling.closed_form.nets import (
    assert_same,
    enumerated,
    masks,
    numbers,
    seeded,
)
from tests.statistics import assert_mean_is, assert_variance_is


def check(found, mean, covariance):
    assert found.exact
    assert_same(found.mean, mean)
    assert_same(found.covariance, covariance)


def test_one_linear_layer_is_exact():
    """E86, E87."""
    model = seeded(
        lambda: nn.Sequential(
            nn.Linear(2, 4), nn.Tanh(), nn.Dropout(0.3), nn.Linear(4, 2)
        )
    )
    x = numbers(3, 2)
    hidden = model[:2](x)
    found = MCDropout(model).moments(x)
    check(found, *enumerated(lambda m: model[3](hidden * m), masks(0.3, 4)))


def linear_net() -> nn.Sequential:
    return seeded(
        lambda: nn.Sequential(
            nn.Dropout(0.3),
            nn.Linear(3, 4),
            nn.Dropout(0.5),
            nn.Linear(4, 3),
            nn.Linear(3, 2),
        )
    )


def test_linear_networks_are_exact_with_correlations():
    """E88: masks in several layers, and layers without a mask between them."""
    model, x = linear_net(), numbers(3, 3)
    found = MCDropout(model).moments(x, correlated=True)

    def run(first, second):
        return model[4](model[3](model[1](x * first) * second))

    check(found, *enumerated(run, masks(0.3, 3), masks(0.5, 4)))


def test_without_correlations_the_mean_of_a_linear_network_is_exact():
    model, x = linear_net(), numbers(3, 3)
    found = MCDropout(model).moments(x)
    exact = MCDropout(model).moments(x, correlated=True)
    assert found.method == "propagated"
    assert_same(found.mean, exact.mean)
    assert not torch.allclose(found.variance, exact.variance, rtol=0.01)


def test_last_convolution_is_exact():
    model = seeded(lambda: nn.Sequential(nn.Dropout(0.4), nn.Conv2d(1, 2, 2)))
    x = numbers(2, 1, 3, 2)
    found = MCDropout(model).moments(x)
    mean, covariance = enumerated(lambda m: model[1](x * m), masks(0.4, 1, 3, 2))
    assert found.exact
    assert_same(found.mean, mean)
    assert_same(found.variance.flatten(1), covariance.diagonal(dim1=1, dim2=2))


def test_last_average_is_exact():
    model = seeded(
        lambda: nn.Sequential(nn.Conv2d(1, 1, 1), nn.Dropout(0.4), nn.AvgPool2d(2))
    )
    x = numbers(2, 1, 2, 4)
    maps = model[0](x)
    found = MCDropout(model).moments(x)
    mean, covariance = enumerated(
        lambda m: F.avg_pool2d(maps * m, 2), masks(0.4, 1, 2, 4)
    )
    assert found.exact
    assert_same(found.mean, mean)
    assert_same(found.variance.flatten(1), covariance.diagonal(dim1=1, dim2=2))


def normal_inputs() -> nn.Sequential:
    """Inputs with Gaussian noise: what enters the units really is Gaussian."""
    first = caveat.noise.Gaussian(0.4).wrap(seeded(lambda: nn.Linear(4, 6)))
    return nn.Sequential(first, nn.ReLU(), seeded(lambda: nn.Linear(6, 2)))


@pytest.mark.parametrize("unit", [nn.ReLU, nn.Tanh, nn.Sigmoid, nn.LeakyReLU])
def test_gaussian_units_have_exact_marginals(unit):
    """Each hidden unit on its own, against many draws."""
    model = nn.Sequential(normal_inputs()[0], unit())
    x = numbers(3, 4)
    found = MCDropout(model).moments(x)
    draws = MCDropout(model, seed=1).draws(x, n_draws=2000)
    seldom = found.std < 0.1 * found.std.mean()  # too few draws bend these units
    assert seldom.float().mean() < 0.2
    often = draws[:, ~seldom]
    assert_mean_is(often, found.mean[~seldom])
    assert_variance_is(often, found.variance[~seldom])


def test_correlations_bring_it_closer():
    """E89: hidden units share the noise of the inputs."""
    model, x = normal_inputs(), numbers(40, 4)
    draws = MCDropout(model, seed=1).draws(x, n_draws=3000)
    rough, fine = (
        (MCDropout(model).moments(x, correlated=c).std / draws.std(0) - 1).abs().mean()
        for c in (False, True)
    )
    assert fine < 0.5 * rough
    assert fine < 0.12


def test_rows_can_come_in_batches():
    model, x = linear_net(), numbers(7, 3)
    whole = MCDropout(model).moments(x)
    parts = MCDropout(model).moments(x, batch_size=3)
    assert_same(parts.mean, whole.mean)
    assert_same(parts.covariance, whole.covariance)


def test_masks_by_row_are_the_same():
    model, x = linear_net(), numbers(3, 3)
    shared, own = (MCDropout(model, shared=s).moments(x) for s in (True, False))
    assert_same(shared.variance, own.variance)


def test_half_precision():
    model = linear_net().bfloat16()
    x = numbers(3, 3).bfloat16()
    found = MCDropout(model).moments(x)
    assert found.mean.dtype == torch.float32
    again = MCDropout(model.double()).moments(x.double())
    assert torch.allclose(found.std.double(), again.std, rtol=0.02)


def test_the_model_is_not_touched():
    model, x = linear_net().train(), numbers(3, 3)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    MCDropout(model).moments(x)
    assert model.training
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
