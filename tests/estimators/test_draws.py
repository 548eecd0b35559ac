"""Pooled draws against full enumeration of masks and against those of the fleet."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from caveat.estimators.draws import pooled_draws, seed_of
from caveat.training.ensembles import Candidate, Problem, Settings, fit_ensembles
from tests.estimators.dropout_data import rows
from tests.statistics import assert_mean_is, assert_variance_is

RATES = {"drop_rate": 0.3, "input_drop_rate": 0.2}


def an_ensemble(**settings):
    x, y = rows(40, 2, 1)
    candidate = Candidate(**RATES, hidden=(3,), epochs=20)
    own = Settings(seed=3, **settings)
    (ensemble,) = fit_ensembles([Problem("some", x, y, candidate)], own)
    return ensemble, x[:4]


def networks_of(ensemble):
    return [ensemble.trained.network(i) for i in range(len(ensemble.trained))]


def exact_moments(network, x):
    """Mean and variance over all masks of the two features and three units."""
    first, second = (m for m in network if isinstance(m, nn.Linear))
    outputs, chances = [], []
    for mask in product((0.0, 1.0), repeat=5):
        kept = torch.tensor(mask, dtype=torch.float64)
        keep = torch.tensor([0.8] * 2 + [0.7] * 3, dtype=torch.float64)
        chances.append(torch.where(kept > 0, keep, 1 - keep).prod())
        noise = kept / keep
        h = torch.relu((x * noise[:2]) @ first.weight.double().T + first.bias)
        outputs.append((h * noise[2:]) @ second.weight.double().T + second.bias)
    chance = torch.stack(chances)[:, None, None]
    mean = (chance * torch.stack(outputs)).sum(0)
    square = (chance * torch.stack(outputs).square()).sum(0)
    return mean, square - mean.square()


def test_moments_are_those_of_all_masks():
    """The rates of the fleet are rounded to 1/65536, those of torch are not."""
    ensemble, x = an_ensemble()
    (network,) = networks_of(ensemble)
    inputs = ensemble.scaling.inputs(x).double()
    mean, variance = (v.detach() for v in exact_moments(network, inputs))
    pooled = pooled_draws([network], inputs, n_draws=20_000, seed=0)
    fleet = ensemble.trained.draws(inputs, n_draws=20_000)[:, 0].double()
    for draws in (pooled, fleet):
        assert_mean_is(draws, mean)
        assert_variance_is(draws, variance)


@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
def test_pooled_draws_and_fleet_draws_agree(noise):
    """Two samples: each moment within five of their joint standard errors."""
    ensemble, x = an_ensemble(noise=noise, n_members=3)
    inputs = ensemble.scaling.inputs(x)
    ours = pooled_draws(networks_of(ensemble), inputs, n_draws=2000, seed=1)
    theirs = ensemble.trained.draws(inputs, n_draws=2000).double()
    assert ours.shape == (6000, 4, 1) and ours.dtype == torch.float64
    for member in range(3):  # the networks take turns
        a, b = ours[member::3], theirs[:, member]
        assert_mean_is(a - b, 0.0)
        squares = (a - a.mean(0)).square() - (b - b.mean(0)).square()
        assert_mean_is(squares, 0.0)


def test_rows_do_not_depend_on_each_other():
    ensemble, x = an_ensemble(n_members=2)
    inputs = ensemble.scaling.inputs(x)
    whole = pooled_draws(networks_of(ensemble), inputs, n_draws=20, seed=1)
    for part in ([3], [2, 0], [1, 3, 2]):
        some = pooled_draws(networks_of(ensemble), inputs[part], n_draws=20, seed=1)
        assert_close(some, whole[:, part], rtol=1e-12, atol=1e-12)


def test_networks_without_noise_have_one_draw_each():
    nets = [nn.Sequential(nn.Linear(2, 1)) for _ in range(3)]
    x = torch.randn(4, 2)
    draws = pooled_draws(nets, x, n_draws=50, seed=0)
    expected = torch.stack([net(x) for net in nets]).double()
    assert_close(draws, expected, atol=1e-6, rtol=1e-6)


def test_networks_are_not_changed():
    net = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Linear(3, 1)).eval()
    pooled_draws([net], torch.randn(4, 2), n_draws=3, seed=0)
    assert net[0].weight.dtype == torch.float32 and not net.training


def test_seeds():
    assert seed_of(5) == seed_of(np.random.RandomState(5)) != seed_of(6)
    assert seed_of(np.random.default_rng(1)) == seed_of(np.random.default_rng(1))
    assert seed_of(None) != seed_of(None)
    with pytest.raises(ValueError, match="cannot be used to seed"):
        seed_of("today")
