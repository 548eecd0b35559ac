"""Any module with any noise, trained on the bound."""

import numpy as np
import pytest
import torch
from torch import nn

from caveat import noise
from caveat.errors import DivergedError, ParameterError
from caveat.training import (
    EarlyStopping,
    GaussianWithPrecision,
    Rows,
    Schedule,
    SquaredError,
    fit_module,
)


def fit(net, rows, *, seed=0, precision=20.0, lengthscale=0.1, **schedule):
    return fit_module(
        net,
        rows,
        objective=SquaredError(),
        schedule=Schedule(batch_size=20, keep_last=True, **schedule),
        precision=precision,
        lengthscale=lengthscale,
        seed=seed,
    )


def some_rows(n_rows=60):
    x = np.linspace(-1.5, 1.5, n_rows)
    y = np.sin(2 * x) + 0.1 * np.random.default_rng(0).normal(size=n_rows)
    return Rows.of(x[:, None], y)


def a_net(family):
    torch.manual_seed(0)
    first, last = nn.Linear(1, 20), nn.Linear(20, 1)
    return nn.Sequential(first, nn.Tanh(), family.wrap(last))


FAMILIES = [
    noise.Bernoulli(0.1),
    noise.Gaussian(0.1),
    noise.DropConnect(0.1),
    noise.Concrete(0.1),
    noise.Mixture(0.1, std=0.05),
    noise.LowRank(rank=2),
    noise.FactorisedGaussian(),
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_every_family_learns_and_the_model_is_left_alone(family):
    net, rows = a_net(family), some_rows()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    trained = fit(net, rows, epochs=120, seed=1)
    error = (trained(rows.x) - rows.y).square().mean()
    assert error < 0.2 * rows.y.var()
    assert not trained.training
    assert all(torch.equal(before[k], v) for k, v in net.state_dict().items())


def test_same_seed_same_weights_and_torchs_generator_is_left_alone():
    net, rows = a_net(noise.Bernoulli(0.2)), some_rows()
    state = torch.get_rng_state()
    first, again, other = (
        fit(net, rows, precision=1.0, epochs=3, seed=s) for s in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first[0].weight, again[0].weight)
    assert not torch.equal(first[0].weight, other[0].weight)


def test_without_data_the_prior_is_what_remains():
    """A huge length-scale shrinks the weights of the plain first layer to nothing."""
    net, rows = a_net(noise.Bernoulli(0.1)), some_rows()
    trained = fit(net, rows, precision=1e-2, lengthscale=30.0, epochs=200)
    assert trained[0].weight.abs().max() < 1e-2


def test_divergence_is_an_error():
    with pytest.raises(DivergedError, match="diverged"):
        net = a_net(noise.Bernoulli(0.1))
        fit(net, some_rows(), precision=1.0, learning_rate=1e30, epochs=5)


def test_what_torch_draws_meanwhile_does_not_matter():
    """Somebody else's draws between two trainings change nothing."""
    net, rows = a_net(noise.Gaussian(0.2)), some_rows()
    first = fit(net, rows, epochs=2)
    torch.rand(3)
    assert torch.equal(fit(net, rows, epochs=2)[0].weight, first[0].weight)


def test_a_learned_rate_gets_its_gradient():
    """From a rate far too high for this data the bound pulls it down."""
    net, rows = a_net(noise.Concrete(0.5)), some_rows()
    trained = fit(net, rows, epochs=120)
    assert float(trained[-1].drop_rate.detach()) < 0.4


def test_early_stopping_is_refused():
    with pytest.raises(ParameterError, match="does not stop early"):
        fit(a_net(noise.Bernoulli(0.1)), some_rows(), early_stopping=EarlyStopping())


def test_a_weighted_gradient_is_not_that_of_the_bound():
    with pytest.raises(ParameterError, match="beta must be 0"):
        fit_module(
            a_net(noise.Bernoulli(0.1)),
            some_rows(),
            objective=GaussianWithPrecision(beta=0.5),
            schedule=Schedule(1),
            precision=1.0,
            lengthscale=1.0,
        )
