"""The one door to draw: every noise has the masks of MCDropout on its networks."""

import copy
import pickle
from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

import caveat
from caveat import noise
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.training import Member, NetworkSpec, Rows, Schedule, train
from tests.statistics import assert_mean_is, assert_variance_is

SCHEDULE = Schedule(epochs=12, batch_size=16)
SPEC = NetworkSpec((8,), drop_rate=0.3, input_drop_rate=0.2, schedule=SCHEDULE)
NOISES = [
    "bernoulli",
    "gaussian",
    noise.Bernoulli(0.2),
    noise.Bernoulli(0.2, on_biases=True),
    noise.Gaussian(0.2),
    noise.DropConnect(0.2),
    noise.Concrete(0.2),
    noise.Mixture(0.2, std=0.05),
    noise.Components((0.2, 0.8), std=0.05),
    noise.LowRank(rank=2),
    noise.FactorisedGaussian(),
]


def some_rows(n_inputs=3):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, n_inputs))
    return Rows.of(x, np.sin(x[:, 0]))


def trained_with(*specs):
    rows = some_rows()
    members = [
        Member.of(spec, f"network {i}", precision=10.0, n_train=50, seed=i)
        for i, spec in enumerate(specs)
    ]
    return train(members, [rows], n_threads=1), rows.x[:6]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("family", NOISES, ids=str)
@pytest.mark.parametrize("hidden", [(8,), (5, 4)])
def test_draws_are_those_of_mcdropout(hidden, family, dtype):
    spec = SPEC.vary(noise=family, hidden=hidden)
    trained, x = trained_with(spec, spec, spec.vary(input_drop_rate=0.0))
    found = trained.draws(x.to(dtype), n_draws=40, seed=4)
    assert found.shape == (40, 3, 6, 1) and found.dtype == dtype
    for index in range(3):
        net = copy.deepcopy(trained.network(index)).to(dtype)
        engine = caveat.MCDropout(net, seed=trained.mask_seed(index, 4))
        expected = engine.draws(x.to(dtype), n_draws=40)
        torch.testing.assert_close(found[:, index], expected)
    assert found.std(0).min() > 0


@pytest.mark.parametrize("activation", ["tanh", "cos", "gelu", "identity"])
def test_other_non_linearities_too(activation):
    trained, x = trained_with(SPEC.vary(activation=activation, hidden=(5, 4)))
    found = trained.draws(x, n_draws=10)[:, 0]
    engine = caveat.MCDropout(trained.network(0), seed=trained.mask_seed(0))
    torch.testing.assert_close(found, engine.draws(x, n_draws=10))


def test_moments_are_those_of_all_masks():
    """Full enumeration: two features and three units."""
    rows = some_rows(2)
    member = Member.of(SPEC.vary(hidden=(3,)), "a", precision=10.0, n_train=50)
    trained, x = train([member], [rows]), rows.x[:4].double()
    first, second = (m.double() for m in trained.network(0) if isinstance(m, nn.Linear))
    outputs, chances = [], []
    for mask in product((0.0, 1.0), repeat=5):
        kept = torch.tensor(mask, dtype=torch.float64)
        keep = torch.tensor([0.8] * 2 + [0.7] * 3, dtype=torch.float64)
        chances.append(torch.where(kept > 0, keep, 1 - keep).prod())
        factors = kept / keep
        outputs.append(second(first(x * factors[:2]).relu() * factors[2:]).detach())
    chance = torch.stack(chances)[:, None, None]
    mean = (chance * torch.stack(outputs)).sum(0)
    square = (chance * torch.stack(outputs).square()).sum(0)
    draws = trained.draws(x, n_draws=20_000)[:, 0]
    assert_mean_is(draws, mean)
    assert_variance_is(draws, square - mean.square())


@pytest.mark.parametrize("family", ["bernoulli", "gaussian", noise.Concrete(0.2)])
def test_draws_do_not_depend_on_other_rows_or_their_number(family):
    trained, x = trained_with(*[SPEC.vary(noise=family)] * 2)
    many = trained.draws(x, n_draws=50)
    few = trained.draws(x[[4, 1]], n_draws=20)
    torch.testing.assert_close(many[:20, :, [4, 1]], few)


@pytest.mark.parametrize("family", ["bernoulli", noise.Concrete(0.2)])
def test_networks_have_masks_of_their_own_and_seeds_others(family):
    spec = SPEC.vary(noise=family)
    trained, x = trained_with(spec, spec)
    same = trained[[0, 0]].draws(x, n_draws=5)
    assert not torch.allclose(same[:, 0], same[:, 1])
    seeded = [trained.draws(x, n_draws=5, seed=seed) for seed in (1, 1, 2)]
    assert torch.equal(seeded[0], seeded[1])
    assert not torch.allclose(seeded[0], seeded[2])


@pytest.mark.parametrize("family", ["gaussian", noise.Concrete(0.2)])
def test_a_part_of_the_fleet_is_not_led_by_what_the_whole_remembers(family):
    spec = SPEC.vary(noise=family)
    trained, x = trained_with(spec, spec.vary(input_drop_rate=0.0))
    trained.draws(x, n_draws=5)
    part = trained[[1]]
    engine = caveat.MCDropout(part.network(0), seed=part.mask_seed(0))
    torch.testing.assert_close(
        part.draws(x, n_draws=5)[:, 0], engine.draws(x, n_draws=5)
    )


@pytest.mark.parametrize("family", ["bernoulli", noise.Concrete(0.2)])
def test_rows_of_each_member_may_differ(family):
    spec = SPEC.vary(noise=family)
    trained, x = trained_with(spec, spec)
    both = trained.draws(torch.stack([x, 2 * x]), n_draws=5)
    torch.testing.assert_close(both[:, 0], trained.draws(x, n_draws=5)[:, 0])
    torch.testing.assert_close(both[:, 1], trained.draws(2 * x, n_draws=5)[:, 1])


@pytest.mark.parametrize("family", ["bernoulli", noise.Concrete(0.2)])
def test_mean_outputs_are_those_of_the_networks(family):
    spec = SPEC.vary(noise=family)
    trained, x = trained_with(spec, spec)
    expected = torch.stack([trained.network(i)(x) for i in range(2)]).detach()
    torch.testing.assert_close(trained.mean_outputs(x), expected)


def test_a_rate_of_zero_draws_the_same_function():
    trained, x = trained_with(SPEC.vary(drop_rate=0.0, input_drop_rate=0.0))
    draws = trained.draws(x, n_draws=70)
    assert draws.shape == (70, 1, 6, 1) and not trained.has_noise
    assert torch.equal(draws[0], draws[-1])
    torch.testing.assert_close(draws[0], trained.mean_outputs(x))


@pytest.mark.parametrize("family", ["bernoulli", noise.Concrete(0.2)])
def test_copies_draw_the_same(family):
    trained, x = trained_with(SPEC.vary(noise=family))
    before = trained.draws(x.double(), n_draws=5)
    for other in (copy.deepcopy(trained), pickle.loads(pickle.dumps(trained))):
        assert torch.equal(other.draws(x.double(), n_draws=5), before)


def test_inputs_of_the_wrong_shape_are_refused():
    trained, _ = trained_with(SPEC)
    with pytest.raises(ShapeError, match="3 inputs"):
        trained.draws(torch.zeros(5, 2), n_draws=2)
    with pytest.raises(ParameterError, match="n_draws must be at least 1"):
        trained.draws(torch.zeros(5, 3), n_draws=0)
    whole = torch.zeros(5, 3, dtype=torch.int64)  # weights must not become whole, too
    for ask in (trained.mean_outputs, lambda x: trained.draws(x, n_draws=2)):
        with pytest.raises(InputTypeError, match=r"floating-point.*int64"):
            ask(whole)


def test_no_rows_have_no_draws():
    trained, x = trained_with(SPEC)
    assert trained.draws(x[:0], n_draws=4).shape == (4, 1, 0, 1)
