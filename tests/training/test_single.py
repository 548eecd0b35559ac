"""Any module with any noise, trained on the bound."""

import numpy as np
import pytest
import torch
from torch import nn

from caveat import noise
from caveat.errors import CaveatError
from caveat.training import Architecture, Recipe, Rows
from caveat.training.single import fit_module

RECIPE = Recipe(Architecture(1, (20,), 1), batch_size=20)


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
    noise.Mixture(0.1, sd=0.05),
    noise.LowRank(rank=2),
    noise.FactorisedGaussian(),
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_every_family_learns_and_the_model_is_left_alone(family):
    net, rows = a_net(family), some_rows()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    trained = fit_module(
        net, rows, RECIPE, precision=20.0, lengthscale=0.1, epochs=120, seed=1
    )
    error = (trained(rows.x) - rows.y).square().mean()
    assert error < 0.2 * rows.y.var()
    assert not trained.training
    assert all(torch.equal(before[k], v) for k, v in net.state_dict().items())


def test_same_seed_same_weights_and_torchs_generator_is_left_alone():
    net, rows = a_net(noise.Bernoulli(0.2)), some_rows()
    state = torch.get_rng_state()
    settings = {"precision": 1.0, "lengthscale": 0.1, "epochs": 3}
    first, again, other = (
        fit_module(net, rows, RECIPE, seed=s, **settings) for s in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first[0].weight, again[0].weight)
    assert not torch.equal(first[0].weight, other[0].weight)


def test_without_data_the_prior_is_what_remains():
    """A huge length-scale shrinks the weights of the plain first layer to nothing."""
    net, rows = a_net(noise.Bernoulli(0.1)), some_rows()
    trained = fit_module(
        net, rows, RECIPE, precision=1e-2, lengthscale=30.0, epochs=200
    )
    assert trained[0].weight.abs().max() < 1e-2


def test_divergence_is_an_error():
    with pytest.raises(CaveatError, match="diverged"):
        fit_module(
            a_net(noise.Bernoulli(0.1)),
            some_rows(),
            RECIPE,
            precision=1.0,
            lengthscale=0.1,
            learning_rate=1e30,
            epochs=5,
        )
