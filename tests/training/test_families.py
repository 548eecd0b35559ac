"""Fleets with noise of any family."""

import numpy as np
import pytest
import torch

from caveat import noise
from caveat.errors import DivergedError, ParameterError
from caveat.training import Member, NetworkSpec, Rows, Schedule, Watch, train
from tests.statistics import assert_mean_is

X = np.linspace(-1.5, 1.5, 60)[:, None]
ROWS = Rows.of(X, np.sin(2 * X))


SPEC = NetworkSpec(
    (20,),
    activation="tanh",
    drop_rate=0.1,
    lengthscale=0.1,
    schedule=Schedule(80, 20, keep_last=True),
)


def member(family, name="a", *, seed=0, **changes):
    spec = SPEC.vary(noise=family, **changes)
    return Member.of(spec, name, precision=20.0, n_train=60, seed=seed)


@pytest.mark.parametrize(
    "family", [noise.Concrete(), noise.FactorisedGaussian(), noise.DropConnect(0.1)]
)
def test_a_family_is_trained_and_drawn_from(family):
    trained = train([member(family), member(family, "b", seed=1)], [ROWS])
    draws = trained.draws(ROWS.x, n_draws=100)
    assert draws.shape == (100, 2, 60, 1)
    assert float(draws.std(0).mean()) > 0
    assert torch.equal(draws, trained.draws(ROWS.x, n_draws=100))
    error = (trained.mean_outputs(ROWS.x)[0] - ROWS.y).square().mean()
    assert error < 0.4 * ROWS.y.var()
    assert torch.equal(trained[[1]].mean_outputs(ROWS.x)[0], trained.network(1)(ROWS.x))


def test_a_rate_of_zero_leaves_a_layer_without_noise():
    trained = train([member(noise.Bernoulli(0.2), epochs=2)], [ROWS])
    plain, noisy = trained.network(0)[0], trained.network(0)[2]
    assert isinstance(plain, torch.nn.Linear)
    assert isinstance(noisy, noise.NoisyLayer)


def test_bernoulli_as_a_family_is_dropout():
    """Draws of a trained net against those of the same net with nn.Dropout."""
    trained = train([member(noise.Bernoulli(0.3), epochs=5)], [ROWS])
    net, x = trained.network(0), ROWS.x[:3]
    mean = net(x)[:, 0].detach()  # dropout before a linear layer: exact
    assert_mean_is(trained.draws(x, n_draws=5000)[:, 0, :, 0], mean)


def test_divergence_names_the_member():
    wild = member(noise.Concrete(), "wild", learning_rate=1e30, epochs=5)
    with pytest.raises(DivergedError, match="wild: training of Sequential diverged"):
        train([wild], [ROWS])


def test_early_stopping_is_refused():
    watch = Watch([ROWS], every=1, patience=1)
    with pytest.raises(ParameterError, match="early stopping"):
        train([member(noise.Concrete())], [ROWS], watch=watch)


def test_without_rates_all_draws_are_the_same():
    trained = train([member(noise.Concrete(), drop_rate=0.0, epochs=2)], [ROWS])
    assert not trained.has_noise
    draws = trained.draws(ROWS.x, n_draws=3)
    assert draws.shape == (3, 1, 60, 1)
    assert torch.equal(draws[2], trained.mean_outputs(ROWS.x))


def test_drawing_touches_neither_modes_nor_generators():
    trained = train([member(noise.Concrete(), epochs=2)], [ROWS])
    state = torch.get_rng_state()
    before = [m.training for m in trained.network(0).modules()]
    trained.draws(ROWS.x.double(), n_draws=5)
    assert torch.equal(torch.get_rng_state(), state)
    assert [m.training for m in trained.network(0).modules()] == before
    assert trained.network(0)[0].weight.dtype == torch.float32
