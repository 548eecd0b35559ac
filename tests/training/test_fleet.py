"""Fleets: each member learns as if it were alone, and does what plain torch does."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

import caveat
from caveat.errors import CaveatWarning, ParameterError, ShapeError
from caveat.training import Architecture, Member, Recipe, Rows, Watch, train
from caveat.training.objectives import SoftmaxCrossEntropy
from caveat.training.schedules import cosine
from caveat.training.streams import RowOrder, first_weights
from tests.statistics import assert_mean_is


def some_rows(n_rows=50, n_inputs=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, n_inputs))
    return Rows.of(x, np.sin(x[:, 0]) + 0.1 * rng.normal(size=n_rows))


def a_member(name="a", *, rates=(0.1, 0.2), **changes):
    settings = {"epochs": 12, "seed": 3, "l2_penalties": (1e-3,) * len(rates)}
    return Member(name, rates, **(settings | {"bias_l2_penalty": 1e-4} | changes))


RECIPE = Recipe(Architecture(3, (8,), 1), batch_size=16)


def test_without_noise_it_is_the_ordinary_loop():
    rows, member = some_rows(), a_member(rates=(0.0, 0.0))
    trained = train(RECIPE, [member], [rows])
    net = ordinary_loop(rows, member)
    torch.testing.assert_close(
        trained.network(0)(rows.x), net(rows.x), rtol=1e-3, atol=1e-4
    )


def ordinary_loop(rows, member):
    """Restated with torch's modules and optimiser."""
    architecture = RECIPE.architecture
    flat = torch.from_numpy(first_weights(architecture, member.seed))
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    with torch.no_grad():
        net[0].weight.copy_(flat[:24].view(3, 8).T)
        net[2].weight.copy_(flat[32:40].view(8, 1).T)
        net[0].bias.zero_(), net[2].bias.zero_()
    optimiser = torch.optim.Adam(net.parameters())
    order = RowOrder(len(rows), RECIPE, member.seed)
    total = member.epochs * 4
    for step, places in enumerate(order.take(total)):
        chosen = torch.from_numpy(places[places >= 0])
        error = 0.5 * (net(rows.x[chosen]) - rows.y[chosen]).square().mean()
        weights = net[0].weight.square().sum() + net[2].weight.square().sum()
        biases = net[0].bias.square().sum() + net[2].bias.square().sum()
        loss = error + 1e-3 * weights + 1e-4 * biases
        rate = member.learning_rate * float(cosine(np.array(step / total)))
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return net


@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
def test_a_member_does_not_depend_on_its_neighbours(noise):
    recipe = Recipe(RECIPE.architecture, batch_size=16, noise=noise)
    data = [some_rows(50), some_rows(23, seed=1), some_rows(70, seed=2)]
    members = [
        a_member("a", data=0),
        a_member("b", data=1, rates=(0.0, 0.5), epochs=30),
        a_member("c", data=2, learning_rate=1e-3, seed=9),
    ]
    together = train(recipe, members, data)
    for i, member in enumerate(members):
        alone = train(recipe, [member], data)
        torch.testing.assert_close(
            alone.parameters[0], together.parameters[i], rtol=1e-4, atol=1e-5
        )


def test_many_cohorts_and_threads_change_nothing(monkeypatch):
    members = [a_member(str(i), seed=i, epochs=3 + i % 4) for i in range(20)]
    data = [some_rows()]
    whole = train(RECIPE, members, data, n_threads=1)
    monkeypatch.setattr("caveat.training.fleet._COHORT", 1)
    monkeypatch.setattr("caveat.training.cohort._MOST_STEPS", 5)
    parts = train(RECIPE, members, data, n_threads=2)
    assert [m.name for m in parts.members] == [m.name for m in members]
    torch.testing.assert_close(whole.parameters, parts.parameters, rtol=1e-4, atol=1e-5)


def test_torchs_threads_are_left_as_they_were():
    before = torch.get_num_threads()
    train(RECIPE, [a_member()], [some_rows()], n_threads=2)
    assert torch.get_num_threads() == before


def test_same_seed_same_network_other_seed_another():
    rows = some_rows()
    twice = [train(RECIPE, [a_member()], [rows]).parameters for _ in range(2)]
    other = train(RECIPE, [a_member(seed=4)], [rows]).parameters
    assert torch.equal(*twice)
    assert not torch.allclose(twice[0], other)


def test_draws_agree_with_those_of_the_sampling_engine():
    rows = some_rows()
    for noise in ("bernoulli", "gaussian"):
        recipe = Recipe(RECIPE.architecture, batch_size=16, noise=noise)
        trained = train(recipe, [a_member(rates=(0.2, 0.3))], [rows])
        ours = trained.draws(rows.x[:4], n_draws=4000, seed=1)[:, 0, :, 0]
        engine = caveat.MCDropout(trained.network(0), seed=2)
        theirs = engine.draws(rows.x[:4], n_draws=4000)[..., 0]
        gap = ours - theirs  # independent, so draw by draw: of mean zero
        assert_mean_is(gap, torch.zeros(4))
        squares = (ours - ours.mean(0)).square() - (theirs - theirs.mean(0)).square()
        assert_mean_is(squares, torch.zeros(4))


def test_draws_are_those_of_all_masks():
    """Enumerate the masks of a net of two hidden units."""
    recipe = Recipe(Architecture(1, (2,), 1))
    trained = train(recipe, [a_member(rates=(0.0, 0.25))], [some_rows(20, 1)])
    net, x = trained.network(0), torch.tensor([[0.3], [-1.2]])
    first, last = net[0], net[-1]
    values, weights = [], []
    for mask in ((0, 0), (0, 1), (1, 0), (1, 1)):
        kept = torch.tensor(mask, dtype=torch.float32)
        values.append(last(torch.relu(first(x)) * kept / 0.75)[:, 0])
        weights.append(0.75 ** sum(mask) * 0.25 ** (2 - sum(mask)))
    exact = (torch.stack(values) * torch.tensor(weights)[:, None]).sum(0)
    draws = trained.draws(x, n_draws=20_000)[:, 0, :, 0]
    assert_mean_is(draws, exact.detach())


def test_draws_do_not_depend_on_other_rows_or_blocks(monkeypatch):
    rows = some_rows()
    trained = train(RECIPE, [a_member("a"), a_member("b", seed=5)], [rows])
    many = trained.draws(rows.x, n_draws=150)
    few = trained.draws(rows.x[:7], n_draws=100)
    torch.testing.assert_close(many[:100, :, :7], few)
    monkeypatch.setattr("caveat.training.trained._DRAWN", 1)
    torch.testing.assert_close(trained.draws(rows.x, n_draws=150), many)
    torch.testing.assert_close(trained[[1]].draws(rows.x, n_draws=150), many[:, [1]])


def test_a_rate_of_zero_draws_the_same_function():
    rows = some_rows()
    trained = train(RECIPE, [a_member(rates=(0.0, 0.0))], [rows])
    draws = trained.draws(rows.x, n_draws=70)
    assert draws.shape == (70, 1, 50, 1)
    assert torch.equal(draws[0], draws[-1])
    torch.testing.assert_close(draws[0], trained.mean_outputs(rows.x))


def test_a_diverged_member_is_named_and_the_others_are_well():
    rows = some_rows()
    wild = a_member("wild", learning_rate=1e38)
    with pytest.warns(CaveatWarning, match="'wild'"):
        trained = train(RECIPE, [a_member(), wild], [rows])
    assert trained.diverged == ("wild",)
    alone = train(RECIPE, [a_member()], [rows])
    torch.testing.assert_close(alone.parameters[0], trained.parameters[0])


def test_classes_are_learned():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    rows = Rows.of(x, (x[:, 0] > 0) + 2.0 * (x[:, 1] > 0))
    recipe = Recipe(Architecture(2, (30,), 4), SoftmaxCrossEntropy(4))
    trained = train(recipe, [a_member(rates=(0.0, 0.1), epochs=60)], [rows])
    guess = trained.mean_outputs(rows.x)[0].argmax(-1)
    assert (guess == rows.y[:, 0]).float().mean() > 0.95


def test_watch_keeps_the_best_weights_and_stops():
    rng = np.random.default_rng(0)
    noise = Rows.of(rng.normal(size=(30, 3)), rng.normal(size=30))
    held_out = Rows.of(rng.normal(size=(200, 3)), rng.normal(size=200))
    member = a_member(rates=(0.0, 0.0), epochs=400)
    watch = Watch([held_out], every=10, patience=5)
    stopped = train(RECIPE, [member], [noise], watch=watch)
    full = train(RECIPE, [member], [noise])
    losses = [
        RECIPE.objective.loss(t.mean_outputs(held_out.x)[0], held_out.y).mean()
        for t in (stopped, full)
    ]
    assert losses[0] < losses[1]
    assert 0 < stopped.stopped[0] < full.stopped[0] == 800
    assert stopped.stopped[0] % 10 == 0


def test_prior_becomes_penalties():
    from caveat.theory import HALF_SQUARED_ERROR, model_precision

    member = Member.from_prior(
        "a", (0.1, 0.5), precision=4.0, lengthscale=0.3, n_train=70, epochs=5
    )
    for rate, penalty in zip(member.drop_rates, member.l2_penalties, strict=True):
        tau = model_precision(
            l2_penalty=penalty,
            lengthscale=0.3,
            keep_prob=1 - rate,
            n_train=70,
            loss=HALF_SQUARED_ERROR,
            inverted=True,
        )
        assert tau == pytest.approx(4.0)
    assert member.bias_l2_penalty == pytest.approx(0.9 * member.l2_penalties[0])


@pytest.mark.parametrize(
    ("members", "data", "error", "words"),
    [
        ([], [some_rows()], ParameterError, "at least one"),
        ([a_member(), a_member()], [some_rows()], ParameterError, "'a' twice"),
        ([a_member(rates=(0.1,))], [some_rows()], ParameterError, "weight layer, 2"),
        ([a_member(rates=(0.1, 1.0))], [some_rows()], ParameterError, "drop rate"),
        ([a_member(data=1)], [some_rows()], ParameterError, "one of 1 data sets"),
        ([a_member(epochs=0)], [some_rows()], ParameterError, "epochs of member"),
        ([a_member()], [some_rows(n_inputs=4)], ShapeError, "rows of 3 inputs"),
    ],
)
def test_bad_input_is_refused(members, data, error, words):
    with pytest.raises(error, match=words):
        train(RECIPE, members, data)


def test_values_that_are_not_finite_are_refused():
    rows = some_rows()
    rows.x[3, 1] = torch.nan
    with pytest.raises(ParameterError, match="data set 0 must be finite"):
        train(RECIPE, [a_member()], [rows])


def test_unknown_names_are_refused():
    with pytest.raises(ParameterError, match=r"activation must be .*'relu'.*'swish'"):
        Architecture(1, (2,), 1, "swish")
    with pytest.raises(ParameterError, match=r"schedule must be .*'linear'"):
        Recipe(RECIPE.architecture, schedule="linear")
    with pytest.raises(ParameterError, match=r"noise must be .*'poisson'"):
        Recipe(RECIPE.architecture, noise="poisson")
    with pytest.raises(ShapeError, match="rows"):
        Rows(torch.zeros(3), torch.zeros(3, 1))


def test_inputs_of_the_wrong_shape_are_refused():
    trained = train(RECIPE, [a_member()], [some_rows()])
    with pytest.raises(ShapeError, match="3 inputs"):
        trained.draws(torch.zeros(5, 2), n_draws=2)


def test_no_warning_when_all_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(RECIPE, [a_member()], [some_rows()])
