"""Fleets: each member learns as if it were alone, and does what plain torch does."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from caveat.errors import CaveatWarning, ParameterError, ShapeError
from caveat.training import (
    EarlyStopping,
    Member,
    NetworkSpec,
    Rows,
    Schedule,
    SoftmaxCrossEntropy,
    train,
)
from caveat.training.members import Architecture
from caveat.training.schedules import cosine
from caveat.training.streams import RowOrder, first_weights


@pytest.fixture(autouse=True, params=["compiled", "torch"])
def road(request, monkeypatch):
    """Everything holds with the compiled kernel and without."""
    if request.param == "torch":
        monkeypatch.setenv("CAVEAT_KERNEL", "off")


def some_rows(n_rows=50, n_inputs=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, n_inputs))
    return Rows.of(x, np.sin(x[:, 0]) + 0.1 * rng.normal(size=n_rows))


SPEC = NetworkSpec(
    (8,), drop_rate=0.2, input_drop_rate=0.1, schedule=Schedule(12, 16, keep_last=True)
)


def a_member(name="a", *, spec=SPEC, seed=3, data=0, penalty=1e-3, **changes):
    penalties = (penalty,) * (len(spec.hidden) + 1)
    return Member(name, spec.vary(**changes), penalties, 1e-4, data, seed)


QUIET = {"drop_rate": 0.0, "input_drop_rate": 0.0}


def test_without_noise_it_is_the_ordinary_loop():
    rows, member = some_rows(), a_member(**QUIET)
    trained = train([member], [rows])
    net = ordinary_loop(rows, member)
    torch.testing.assert_close(
        trained.network(0)(rows.x), net(rows.x), rtol=1e-3, atol=1e-4
    )


def ordinary_loop(rows, member):
    """Restated with torch's modules and optimiser."""
    schedule = member.spec.schedule
    flat = torch.from_numpy(first_weights(Architecture(3, (8,), 1), member.seed))
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    with torch.no_grad():
        net[0].weight.copy_(flat[:24].view(3, 8).T)
        net[2].weight.copy_(flat[32:40].view(8, 1).T)
        net[0].bias.zero_(), net[2].bias.zero_()
    optimiser = torch.optim.Adam(net.parameters())
    order = RowOrder(len(rows), schedule, member.seed)
    total = schedule.epochs * 4
    for step, places in enumerate(order.take(total)):
        chosen = torch.from_numpy(places[places >= 0])
        error = 0.5 * (net(rows.x[chosen]) - rows.y[chosen]).square().mean()
        weights = net[0].weight.square().sum() + net[2].weight.square().sum()
        biases = net[0].bias.square().sum() + net[2].bias.square().sum()
        loss = error + 1e-3 * weights + 1e-4 * biases
        rate = schedule.learning_rate * float(cosine(np.array(step / total)))
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return net


@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
def test_a_member_does_not_depend_on_its_neighbours(noise):
    spec = SPEC.vary(noise=noise)
    data = [some_rows(50), some_rows(23, seed=1), some_rows(70, seed=2)]
    members = [
        a_member("a", spec=spec, data=0),
        a_member("b", spec=spec, data=1, input_drop_rate=0.0, epochs=30),
        a_member("c", spec=spec, data=2, learning_rate=1e-3, seed=9),
    ]
    together = train(members, data)
    for i, member in enumerate(members):
        alone = train([member], data)
        torch.testing.assert_close(
            alone.parameters[0], together.parameters[i], rtol=1e-4, atol=1e-5
        )


def test_many_cohorts_and_threads_change_nothing(monkeypatch):
    members = [a_member(str(i), seed=i, epochs=3 + i % 4) for i in range(20)]
    data = [some_rows()]
    whole = train(members, data, n_threads=1)
    monkeypatch.setattr("caveat.training.fleet._COHORT", 1)
    monkeypatch.setattr("caveat.training.cohort._MOST_STEPS", 5)
    parts = train(members, data, n_threads=2)
    assert [m.name for m in parts.members] == [m.name for m in members]
    torch.testing.assert_close(whole.parameters, parts.parameters, rtol=1e-4, atol=1e-5)


def test_torchs_threads_are_left_as_they_were():
    before = torch.get_num_threads()
    train([a_member()], [some_rows()], n_threads=2)
    assert torch.get_num_threads() == before


def test_same_seed_same_network_other_seed_another():
    rows = some_rows()
    twice = [train([a_member()], [rows]).parameters for _ in range(2)]
    other = train([a_member(seed=4)], [rows]).parameters
    assert torch.equal(*twice)
    assert not torch.allclose(twice[0], other)


def test_a_diverged_member_is_named_and_the_others_are_well():
    rows = some_rows()
    wild = a_member("wild", learning_rate=1e38)
    with pytest.warns(CaveatWarning, match="'wild'"):
        trained = train([a_member(), wild], [rows])
    assert trained.diverged == ("wild",)
    alone = train([a_member()], [rows])
    torch.testing.assert_close(alone.parameters[0], trained.parameters[0])


def test_classes_are_learned():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    rows = Rows.of(x, (x[:, 0] > 0) + 2.0 * (x[:, 1] > 0))
    spec = NetworkSpec(
        (30,),
        drop_rate=0.1,
        objective=SoftmaxCrossEntropy(4),
        schedule=Schedule(60, keep_last=True),
    )
    trained = train([a_member(spec=spec)], [rows])
    guess = trained.mean_outputs(rows.x)[0].argmax(-1)
    assert (guess == rows.y[:, 0]).float().mean() > 0.95


@pytest.mark.parametrize(
    ("members", "data", "error", "words"),
    [
        ([], [some_rows()], ParameterError, "at least one"),
        ([a_member(), a_member()], [some_rows()], ParameterError, "'a' twice"),
        (
            [Member("a", SPEC, (0.1,))],
            [some_rows()],
            ParameterError,
            "weight layer, 2",
        ),
        ([a_member(data=1)], [some_rows()], ParameterError, "one of 1 data sets"),
        (
            [a_member(), a_member("b", batch_size=8)],
            [some_rows()],
            ParameterError,
            "members of one fleet",
        ),
        (
            [a_member(early_stopping=EarlyStopping())],
            [some_rows()],
            ParameterError,
            "needs rows to stop by",
        ),
        (
            [a_member()],
            [some_rows(), some_rows(n_inputs=4)],
            ShapeError,
            "rows of 3 inputs",
        ),
    ],
)
def test_bad_input_is_refused(members, data, error, words):
    with pytest.raises(error, match=words):
        train(members, data)


def test_values_that_are_not_finite_are_refused():
    rows = some_rows()
    rows.x[3, 1] = torch.nan
    with pytest.raises(ParameterError, match="data set 0 must be finite"):
        train([a_member()], [rows])


def test_no_warning_when_all_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train([a_member()], [some_rows()])


PINNED = {  # two weights of each member
    ("bernoulli", "relu"): [[0.30654305, 0.5333637], [0.40000227, -0.82072377]],
    ("bernoulli", "tanh"): [[0.23859023, 0.5970608], [0.40792039, -0.82578081]],
    ("gaussian", "relu"): [[0.30232653, 0.56056565], [0.4120138, -0.81863242]],
    ("gaussian", "tanh"): [[0.26266679, 0.5625155], [0.41391894, -0.82221967]],
}


@pytest.mark.parametrize(("noise", "activation"), PINNED)
def test_trained_weights_are_what_they_have_always_been(noise, activation):
    """Stored results rest on them: order, noise and updates must not move."""
    spec = SPEC.vary(noise=noise, activation=activation)
    other = spec.vary(input_drop_rate=0.0, learning_rate=2e-2, epochs=7)
    members = [
        Member("a", spec, (1e-3, 1e-3), 1e-4, 0, 3),
        Member("b", other, (1e-3, 2e-3), 0.0, 1, 5),
    ]
    data = [some_rows(50), some_rows(23, seed=1)]
    found = train(members, data, n_threads=1).parameters[:, :2]
    expected = torch.tensor(PINNED[noise, activation])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
