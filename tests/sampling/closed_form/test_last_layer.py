"""Noise, then a linear layer: exact moments, against all masks enumerated."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import caveat
from caveat import MCDropout
from caveat.predictive.gaussian import EXACT
from tests.sampling.closed_form.nets import (
    assert_same,
    enumerated,
    masks,
    numbers,
    seeded,
)


def exact(model: nn.Module, x: torch.Tensor, **settings):
    found = MCDropout(model, seed=0, **settings).regress(x, n_draws=3, precision=4.0)
    assert found.method == EXACT
    assert found.exact
    assert not found.mean_error.any()
    return found


def check(model, x, function, *sites, **settings):
    found = exact(model, x, **settings)
    mean, covariance = enumerated(function, *sites)
    noise = torch.eye(covariance.shape[-1], dtype=torch.float64) / 4.0
    assert_same(found.mean, mean)
    assert_same(found.covariance, covariance + noise)
    variance = covariance.diagonal(dim1=1, dim2=2).reshape(mean.shape)
    assert_same(found.epistemic_variance, variance)


@pytest.mark.parametrize("shared", [True, False])
def test_the_usual_head(shared):
    """E86, E87, E95."""
    model = seeded(
        lambda: nn.Sequential(
            nn.Linear(2, 5), nn.Tanh(), nn.Dropout(0.3), nn.Linear(5, 3)
        )
    )
    x = numbers(4, 2)
    hidden = model[:2](x)
    check(model, x, lambda m: model[3](hidden * m), masks(0.3, 5), shared=shared)


def test_without_bias_on_the_input_itself():
    model = seeded(lambda: nn.Sequential(nn.Dropout(0.6), nn.Linear(4, 2, bias=False)))
    x = numbers(3, 4)
    check(model, x, lambda m: model[1](x * m), masks(0.6, 4))


def test_image_flattened_after_its_dropout():
    model = seeded(
        lambda: nn.Sequential(
            nn.Conv2d(1, 2, 2), nn.Dropout(0.4), nn.Flatten(), nn.Linear(8, 2)
        )
    )
    x = numbers(3, 1, 3, 3)
    maps = model[0](x)
    check(model, x, lambda m: model[3]((maps * m).flatten(1)), masks(0.4, 2, 2, 2))


def test_sequence():
    """A layer on the last axis; every place and unit has a mask of its own."""
    model = seeded(lambda: nn.Sequential(nn.Dropout(0.25), nn.Linear(2, 2)))
    x = numbers(3, 3, 2)
    check(model, x, lambda m: model[1](x * m), masks(0.25, 3, 2))


class InOtherUnits(nn.Module):
    """Standardised targets turned back, as many regression networks do."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        y = self.head(F.dropout(self.body(x).relu_(), 0.5, self.training))
        return 3.0 - y.squeeze(-1) * 2.5


def test_what_follows_the_layer():
    model = seeded(InOtherUnits)
    x = numbers(3, 2)
    hidden = model.body(x).relu()

    def run(m):
        return 3.0 - 2.5 * model.head(hidden * m).squeeze(-1)

    check(model, x, run, masks(0.5, 4))


def test_gaussian_noise():
    """N(1, a) in the place of a mask."""
    layer = seeded(lambda: nn.Linear(3, 2))
    x = numbers(4, 3)
    found = exact(caveat.noise.Gaussian(0.3).wrap(layer), x)
    assert_same(found.mean, layer(x))
    joint = 0.3 * torch.einsum("dk,bk,ek->bde", layer.weight, x.square(), layer.weight)
    assert_same(found.covariance - torch.eye(2).double() / 4.0, joint.detach())


def test_draws_stay_as_they_are():
    """Density and quantiles are those of the mixture of draws, in every method."""
    model = seeded(
        lambda: nn.Sequential(nn.Linear(2, 5), nn.Dropout(0.3), nn.Linear(5, 2))
    )
    x, y = numbers(4, 2), numbers(4, 2, seed=1)
    found, plain = (
        MCDropout(model, seed=0, analytic=a).regress(x, n_draws=50, precision=2.0)
        for a in (None, False)
    )
    assert plain.method == "sampled"
    assert torch.equal(found.draws, plain.draws)
    assert torch.equal(found.log_prob(y), plain.log_prob(y))
    assert torch.equal(found.quantile(0.3), plain.quantile(0.3))
    assert not torch.equal(found.mean, plain.mean)
    assert torch.allclose(plain.mean, plain.draws.mean(0))


def test_half_precision_is_computed_in_single():
    model = seeded(
        lambda: nn.Sequential(nn.Linear(2, 5), nn.Dropout(0.3), nn.Linear(5, 2))
    )
    x = numbers(4, 2)
    low = model.bfloat16()
    found = exact(low, x.bfloat16())
    assert found.mean.dtype == torch.float32
    again = exact(low.double(), x.bfloat16().double())
    assert torch.allclose(found.mean.double(), again.mean, atol=0.05)


def test_no_graph_is_left():
    model = seeded(lambda: nn.Sequential(nn.Dropout(0.3), nn.Linear(5, 2)))
    found = exact(model, numbers(4, 5))
    assert not found.covariance.requires_grad
    assert not found.mean.requires_grad


class NotThisForm(nn.Module):
    """Networks whose end looks like the pattern, but is not."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind
        self.layer = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        if self.kind == "same mask twice":
            mask = self.drop(torch.ones_like(x))
            return self.layer(x * mask) + mask
        if self.kind == "shared by elements":
            return self.layer(F.dropout2d(x.view(-1, 2, 2, 1), 0.5)[..., 0].flatten(1))
        if self.kind == "softmax":
            return self.layer(self.drop(x)).softmax(-1)
        if self.kind == "product of masks":
            return self.layer(self.drop(x)) * self.drop(x)
        if self.kind == "alpha dropout":
            return self.layer(F.alpha_dropout(x, 0.5, True))
        if self.kind == "features in a list":
            hidden = self.drop(x)
            return self.layer(hidden) + hidden
        assert self.kind == "drawn weights"
        return F.linear(x, self.drop(self.layer.weight))


KINDS = (
    "same mask twice",
    "shared by elements",
    "softmax",
    "product of masks",
    "alpha dropout",
    "features in a list",
    "drawn weights",
)


@pytest.mark.parametrize("kind", KINDS)
def test_other_ends_are_left_to_sampling(kind):
    model = seeded(lambda: NotThisForm(kind))
    mc = MCDropout(model, seed=0, analytic=True)
    found = mc.regress(numbers(3, 4), n_draws=20, precision=1.0)
    assert found.method == "sampled"
    assert torch.allclose(found.mean, found.draws.mean(0))


class Turned(nn.Module):
    """What follows the layer turns its outputs, or cannot be followed."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind
        self.drop, self.layer = nn.Dropout(0.5), nn.Linear(2, 2)

    def forward(self, x):
        y = self.layer(self.drop(x))
        if self.kind == "turned":
            return y.transpose(1, 2)
        if self.kind == "divided":
            return 1.0 / y
        assert self.kind == "repeated"
        return y.unsqueeze(-1) * torch.ones(3, dtype=y.dtype)


def test_outputs_in_another_order():
    """Mean and variance are still exact; the covariance is left to the draws."""
    model, x = seeded(lambda: Turned("turned")), numbers(3, 3, 2)
    found = MCDropout(model, seed=0).regress(x, n_draws=500, precision=4.0)
    mean, covariance = enumerated(
        lambda m: model.layer(x * m).transpose(1, 2), masks(0.5, 3, 2)
    )
    assert found.exact
    assert_same(found.mean, mean)
    variance = covariance.diagonal(dim1=1, dim2=2).reshape(mean.shape)
    assert_same(found.epistemic_variance, variance)
    noise = torch.eye(6).double() / 4.0
    assert torch.allclose(found.covariance, covariance + noise, rtol=0.3, atol=0.3)


@pytest.mark.parametrize("kind", ["divided", "repeated"])
def test_ends_that_cannot_be_followed(kind):
    model = seeded(lambda: Turned(kind))
    mc = MCDropout(model, seed=0, analytic=True)
    found = mc.regress(numbers(3, 3, 2), n_draws=20, precision=1.0)
    assert found.method == "sampled"
