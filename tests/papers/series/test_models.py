"""Nets and processes on a small series."""

import math
from dataclasses import replace
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel

from caveat.papers.series.models import (
    SQUARED_EXPONENTIAL,
    NetModel,
    ProcessModel,
    SeriesTask,
    covariance,
)
from caveat.papers.series.nets import Net, train
from caveat.papers.series.points import FEW_DRAWS, Curves, Places

X = np.linspace(-1.5, 1.5, 11)
Y = np.sin(2 * X)
SMALL = Net(
    "small", "relu", 2, 0.25, 0.05, weight_decay=1e-2, batch_size=4, n_steps=7, width=6
)


def task():
    later = np.array([2.0, 3.0])
    return SeriesTask(
        X, Y, Places.of([("later", later, np.sin(2 * later)), ("train", X, Y)])
    )


def test_a_net_predicts_in_three_ways(tmp_path):
    job = NetModel(SMALL, 300)
    points = job.points(task(), tmp_path)
    assert sorted({p.curve for p in points}) == sorted(job.curves)
    assert (tmp_path / "small.safetensors").exists()
    standard = Curves(points, 300).standard("small")
    assert np.isnan(standard.column("sd")).all()
    many = Curves(points, 300).mc("small")
    few = Curves(points, 300).mc("small", FEW_DRAWS)
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
    points = NetModel(net, draws).points(task(), tmp_path)
    module = train(net, X, Y, tmp_path / "small.safetensors")
    x = torch.from_numpy(task().places.x.astype(np.float32))[:, None]
    with torch.no_grad():
        hidden = module[1](module[0](x))
        variance = (0.25 / 0.75 * (hidden * module[-1].weight).square()).sum(1)
    found = Curves(points, draws).mc("small").column("sd") ** 2
    error = math.sqrt(2 / draws) * 1.2  # nearly normal sums of 40
    np.testing.assert_allclose(found, variance.double(), rtol=5 * error)


def test_an_untrained_net_has_its_first_weights(tmp_path):
    points = NetModel(SMALL, 100).untrained.points(task(), tmp_path)
    assert {p.n_steps for p in points} == {0}
    assert {p.n_draws for p in points} == {0, 10}
    assert not list(tmp_path.iterdir())
    assert Curves(points, 100).untrained("small").points
    assert not Curves(points, 10).mc("small").points


def test_a_process_is_that_of_the_formula_without_noise(tmp_path):
    own = task()
    points = ProcessModel(SQUARED_EXPONENTIAL, n_restarts=0).points(own, tmp_path)
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


def test_jobs_can_be_sent_to_other_processes_and_told_apart():
    jobs = [NetModel(SMALL, 20), NetModel(SMALL, 20).untrained, ProcessModel("GP", 0)]
    assert all(len(ForkingPickler.dumps(job)) < 10_000 for job in jobs)
    assert len(set(jobs)) == 3
