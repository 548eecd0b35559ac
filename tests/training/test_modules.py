"""Fleets with noise of any family."""

import numpy as np
import pytest
import torch

from caveat import noise
from caveat.errors import CaveatError, ParameterError
from caveat.training import Architecture, Member, Recipe, Rows, Watch, train
from tests.statistics import assert_mean_is

X = np.linspace(-1.5, 1.5, 60)[:, None]
ROWS = Rows.of(X, np.sin(2 * X))


def recipe(family):
    return Recipe(Architecture(1, (20,), 1, "tanh"), batch_size=20, noise=family)


def member(name="a", *, rates=(0.0, 0.1), **changes):
    settings = {"precision": 20.0, "lengthscale": 0.1, "n_train": 60, "epochs": 80}
    return Member.from_prior(name, rates, **(settings | changes))


@pytest.mark.parametrize(
    "family", [noise.Concrete(), noise.FactorisedGaussian(), noise.DropConnect(0.1)]
)
def test_a_family_is_trained_and_drawn_from(family):
    trained = train(recipe(family), [member(), member("b", seed=1)], [ROWS])
    draws = trained.draws(ROWS.x, n_draws=100)
    assert draws.shape == (100, 2, 60, 1)
    assert float(draws.std(0).mean()) > 0
    assert torch.equal(draws, trained.draws(ROWS.x, n_draws=100))
    error = (trained.mean_outputs(ROWS.x)[0] - ROWS.y).square().mean()
    assert error < 0.4 * ROWS.y.var()
    assert torch.equal(trained[[1]].mean_outputs(ROWS.x)[0], trained.network(1)(ROWS.x))


def test_a_rate_of_zero_leaves_a_layer_without_noise():
    trained = train(recipe(noise.Bernoulli(0.2)), [member(epochs=2)], [ROWS])
    plain, noisy = trained.network(0)[0], trained.network(0)[2]
    assert isinstance(plain, torch.nn.Linear)
    assert isinstance(noisy, noise.NoisyLayer)


def test_bernoulli_as_a_family_is_dropout():
    """Draws of a trained net against those of the same net with nn.Dropout."""
    trained = train(recipe(noise.Bernoulli(0.3)), [member(epochs=5)], [ROWS])
    net, x = trained.network(0), ROWS.x[:3]
    mean = net(x)[:, 0].detach()  # dropout before a linear layer: exact
    assert_mean_is(trained.draws(x, n_draws=5000)[:, 0, :, 0], mean)


def test_divergence_names_the_member():
    wild = member("wild", learning_rate=1e30, epochs=5)
    with pytest.raises(CaveatError, match="wild: training of Sequential diverged"):
        train(recipe(noise.Concrete()), [wild], [ROWS])


def test_early_stopping_is_refused():
    watch = Watch([ROWS], every=1, patience=1)
    with pytest.raises(ParameterError, match="early stopping"):
        train(recipe(noise.Concrete()), [member()], [ROWS], watch=watch)
