"""What CO2 and solar share: training as Caffe does it, resuming, points, processes."""

import math
from dataclasses import replace
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pytest
import torch
from caveat.papers.series.jobs import (
    FEW_DRAWS,
    SQUARED_EXPONENTIAL,
    NetJob,
    ProcessJob,
    Task,
    covariance,
    run_jobs,
    untrained,
)
from safetensors import safe_open
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from torch.nn import functional as F

from caveat.papers.series import nets
from caveat.papers.series.nets import Net, State, advance, train
from caveat.papers.series.points import MC, STANDARD, Curve, Places, Point
from caveat.training.streams import BernoulliNoise, generator

X = np.linspace(-1.5, 1.5, 11)
Y = np.sin(2 * X)
SMALL = Net(
    "small", "relu", 2, 0.25, 0.05, 1e-2, batch_size=4, n_steps=7, gamma=0.5, width=6
)


def rows_of(x=X, y=Y):
    return torch.from_numpy(np.stack([x, y], 1).astype(np.float32))


def factors_of(net, step):
    """Masks over keep probability: the noise of a step, per weight layer."""
    noise = BernoulliNoise([net.member], net.architecture.fan_ins)
    raw = noise.raw(generator(0, 1, step), 1, net.batch_size)
    return [f if f is None else f[0].clone() for f in
            noise.factors(torch.from_numpy(raw), net.batch_size)]  # fmt: skip


def by_autograd(net):
    """The same training, written down step by step."""
    first = net.module(State.first(net).parameters)
    linear = [m for m in first if isinstance(m, torch.nn.Linear)]
    weights = [m.weight.detach().clone().requires_grad_() for m in linear]
    biases = [m.bias.detach().clone().requires_grad_() for m in linear]
    moving = [torch.zeros_like(p) for p in (*weights, *biases)]
    rows, act = rows_of(), {"relu": torch.relu, "tanh": torch.tanh}[net.activation]
    for step in range(net.n_steps):
        chosen = [
            (step * net.batch_size + k) % len(rows) for k in range(net.batch_size)
        ]
        h, masks = rows[chosen, :1], factors_of(net, step)
        for k, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            h = act(h) if k else h
            h = F.linear(h if masks[k] is None else h * masks[k], weight, bias)
        loss = (h - rows[chosen, 1:]).square().sum() / (2 * net.batch_size)
        parameters = [*weights, *biases]
        rate = net.rate * (1 + net.gamma * step) ** -net.power
        with torch.no_grad():
            slopes = torch.autograd.grad(loss, parameters)
            for k, (p, slope) in enumerate(zip(parameters, slopes, strict=True)):
                own = rate * (1 if k < len(weights) else 2)
                moving[k] = 0.9 * moving[k] + own * (slope + net.weight_decay * p)
                p -= moving[k]
    return weights, biases


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_training_is_that_of_caffe(activation, tmp_path):
    net = replace(SMALL, activation=activation)
    module = train(net, X, Y, tmp_path / "net.safetensors")
    linear = [m for m in module if isinstance(m, torch.nn.Linear)]
    for layer, weight, bias in zip(linear, *by_autograd(net), strict=True):
        torch.testing.assert_close(layer.weight, weight, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(layer.bias, bias, rtol=1e-4, atol=1e-6)


def test_masks_drop_hidden_units_only_at_their_rate():
    net = replace(SMALL, width=200)
    masks = factors_of(net, 0)
    assert masks[0] is None
    dropped = torch.stack([m == 0 for m in masks[1:]]).double()
    assert abs(dropped.mean() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / dropped.numel())
    for mask in masks[1:]:
        assert mask.max().item() == pytest.approx(1 / 0.75)
    assert not torch.equal(masks[1], factors_of(net, 1)[1])


def test_module_has_dropout_after_hidden_units_only():
    module = SMALL.module(State.first(SMALL).parameters)
    kinds = [type(m).__name__ for m in module]
    hidden = ["ReLU", "Dropout", "Linear"]
    assert kinds == ["Linear", *hidden, *hidden]
    assert all(m.p == 0.25 for m in module if isinstance(m, torch.nn.Dropout))


def test_first_weights_are_uniform_with_variance_one_over_fan_in():
    net = replace(SMALL, width=300)
    for layer in net.module(State.first(net).parameters):
        if not isinstance(layer, torch.nn.Linear):
            continue
        fan_in = layer.in_features
        assert layer.weight.abs().max() <= math.sqrt(3 / fan_in)
        squares = layer.weight.detach().square().flatten() * fan_in
        error = squares.std() / math.sqrt(len(squares))
        assert abs(squares.mean() - 1) < 5 * error
        assert not layer.bias.any()


def test_an_interrupted_training_goes_on_to_the_same_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(nets, "_SAVED_EVERY", 2)
    whole = train(SMALL, X, Y, tmp_path / "whole.safetensors")
    path = tmp_path / "parts.safetensors"
    train(replace(SMALL, n_steps=3), X, Y, path)
    with safe_open(path, "pt") as file:
        assert file.metadata()["step"] == "3"
    begun = []
    monkeypatch.setattr(
        nets, "advance", lambda n, s, r: begun.append(s.step) or advance(n, s, r)
    )
    parts = train(SMALL, X, Y, path)
    assert begun == [3]
    for a, b in zip(whole.parameters(), parts.parameters(), strict=True):
        assert torch.equal(a, b)
    again = train(SMALL, X, Y, path)
    assert begun == [3, 7]
    assert torch.equal(again[0].weight, whole[0].weight)


@pytest.mark.parametrize("change", [{"rate": 0.01}, {"drop_rate": 0.5}, {"n_steps": 5}])
def test_what_is_not_the_same_training_begins_anew(change, tmp_path):
    path = tmp_path / "net.safetensors"
    train(SMALL, X, Y, path)
    other = replace(SMALL, **change)
    fresh = train(other, X, Y, tmp_path / "fresh.safetensors")
    assert torch.equal(train(other, X, Y, path)[0].weight, fresh[0].weight)


def test_other_rows_begin_anew(tmp_path):
    path = tmp_path / "net.safetensors"
    train(SMALL, X, Y, path)
    fresh = train(SMALL, X, -Y, tmp_path / "fresh.safetensors")
    assert torch.equal(train(SMALL, X, -Y, path)[0].weight, fresh[0].weight)


def task():
    later = np.array([2.0, 3.0])
    return Task(X, Y, Places.of([("later", later, np.sin(2 * later)), ("train", X, Y)]))


def test_places_are_in_order():
    places = task().places
    assert places.part == ("train",) * 11 + ("later",) * 2
    np.testing.assert_array_equal(places.x, [*X, 2.0, 3.0])
    np.testing.assert_array_equal(places.y[:11], Y)


def test_a_net_predicts_in_three_ways(tmp_path):
    job = NetJob(SMALL, task(), 300, tmp_path)
    points = job.points()
    assert sorted({p.curve for p in points}) == sorted(job.keys)
    assert (tmp_path / "small.safetensors").exists()
    standard = Curve.of(points, "small", STANDARD)
    assert np.isnan(standard.column("sd")).all()
    many = Curve.of(points, "small", MC, n_draws=300)
    few = Curve.of(points, "small", MC, n_draws=FEW_DRAWS)
    assert len(many.points) == len(few.points) == len(standard.points) == 13
    known = many.part("train")
    residual = (known.column("mean") - known.column("y")) ** 2
    expected = (residual + known.column("sd") ** 2).mean()
    assert many.points[0].noise_sd ** 2 == pytest.approx(expected)
    assert known.error == pytest.approx(math.sqrt(residual.mean()))


def test_the_sd_of_one_dropped_layer_is_that_of_the_formula(tmp_path):
    """Var f = ((1-p)/p) sum (w h)², theory of one hidden layer, inverted masks."""
    net = replace(SMALL, n_hidden=1, width=40)
    draws = 4000
    points = NetJob(net, task(), draws, tmp_path).points()
    module = train(net, X, Y, tmp_path / "small.safetensors")
    x = torch.from_numpy(task().places.x.astype(np.float32))[:, None]
    with torch.no_grad():
        hidden = module[1](module[0](x))
        variance = (0.25 / 0.75 * (hidden * module[-1].weight).square()).sum(1)
    found = Curve.of(points, "small", MC, n_draws=draws).column("sd") ** 2
    error = math.sqrt(2 / draws) * 1.2  # nearly normal sums of 40
    np.testing.assert_allclose(found, variance.double(), rtol=5 * error)


def test_an_untrained_net_has_its_first_weights(tmp_path):
    job = untrained(NetJob(SMALL, task(), 100, tmp_path))
    points = job.points()
    assert {p.n_steps for p in points} == {0}
    assert {p.n_draws for p in points} == {0, 10}
    assert not list(tmp_path.iterdir())
    assert Curve.of(points, "small", MC, n_draws=10, untrained=True).points
    assert not Curve.of(points, "small", MC, n_draws=10).points


def test_a_process_is_that_of_the_formula_without_noise():
    own = task()
    points = ProcessJob(SQUARED_EXPONENTIAL, own, n_restarts=0).points()
    kernel = covariance(SQUARED_EXPONENTIAL) + WhiteKernel(0.1, (1e-6, 1e1))
    fitted = GaussianProcessRegressor(kernel, random_state=0)
    with pytest.warns(match="close to the specified lower bound"):
        fitted.fit(X[:, None], Y)  # no noise in a sine
    function, noise = fitted.kernel_.k1, fitted.kernel_.k2.noise_level
    gram = function(X[:, None]) + (noise + 1e-10) * np.eye(len(X))
    cross = function(X[:, None], own.places.x[:, None])
    solved = np.linalg.solve(gram, cross)
    variance = function.diag(own.places.x[:, None]) - (cross * solved).sum(0)
    found = np.array([(p.mean, p.sd**2) for p in points])
    np.testing.assert_allclose(found[:, 0], solved.T @ Y, atol=1e-4)
    np.testing.assert_allclose(found[:, 1], variance, atol=2e-6)
    assert points[0].noise_sd == pytest.approx(math.sqrt(noise))


def point(x, y, mean, sd, noise=0.0):
    return Point("m", "GP", 0, 0, "later", x, y, mean, sd, noise)


def test_coverage_counts_two_deviations_with_and_without_noise():
    curve = Curve(
        (
            point(0.0, 0.0, 1.9, 1.0),
            point(1.0, 0.0, 2.1, 1.0, 0.5),
            point(2.0, 0.0, -3.0, 1.0, 0.5),
        )
    )
    assert curve.coverage(noise=False) == pytest.approx(1 / 3)
    assert curve.coverage(noise=True) == pytest.approx(2 / 3)
    assert curve.between(0.5, 2.0).coverage(noise=False) == 0.0
    assert curve.error == pytest.approx(math.sqrt((1.9**2 + 2.1**2 + 9) / 3))


class Fake:
    """A job of one curve, which counts how often it is run."""

    def __init__(self, name: str) -> None:
        self.name, self.runs = name, 0

    @property
    def keys(self):
        return [(self.name, "GP", 0, 0)]

    def points(self):
        self.runs += 1
        return [replace(point(0.5, 1.0, 2.0, 3.0), model=self.name)]


def test_curves_in_the_file_are_not_computed_again(tmp_path: Path):
    path, first, second = tmp_path / "c.csv", Fake("a"), Fake("b")
    run_jobs(path, [first], n_workers=1)
    points = run_jobs(path, [first, second], n_workers=1)
    assert (first.runs, second.runs) == (1, 1)
    assert [p.model for p in points] == ["a", "b"]
    assert run_jobs(path, [first, second], n_workers=1) == points
    assert (first.runs, second.runs) == (1, 1)


def test_jobs_can_be_sent_to_other_processes(tmp_path):
    for job in (NetJob(SMALL, task(), 20, tmp_path), ProcessJob("GP", task(), 0)):
        assert len(ForkingPickler.dumps(job)) < 10_000
