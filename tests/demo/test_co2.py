"""The CO2 task is prepared from its training part alone, and chooses tau there."""

import dataclasses

import numpy as np
import pytest
import torch

from caveat.data import MonthlySeries, load_co2_monthly
from caveat.demo import co2
from caveat.noise import weight_decay_groups
from caveat.predictive import GaussianPredictive
from caveat.sampling import MCDropout
from caveat.theory import Loss

TINY = co2.CO2Effort(width=16, n_steps=30, n_draws=10, plain_passes=1)


def forged() -> MonthlySeries:
    """The series with other values after the training part."""
    series = load_co2_monthly()
    value = series.value.copy()
    value[co2.N_TRAIN :] = 1000.0
    return dataclasses.replace(series, value=value)


def test_the_training_part_is_standardised() -> None:
    task = co2.CO2Task.of(load_co2_monthly())
    train = slice(co2.N_TRAIN)
    for tensor in (task.x[train], task.y[train]):
        assert tensor.mean().item() == pytest.approx(0, abs=1e-6)
        assert tensor.std(correction=0).item() == pytest.approx(1, abs=1e-5)
    assert (task.x * task.y)[train].mean().item() == pytest.approx(0, abs=1e-5)
    back = task.trend + task.scale * task.y[:, 0].double().numpy()
    np.testing.assert_allclose(back, task.series.value, atol=1e-4)


def test_the_training_part_ends_in_march_1981() -> None:
    assert load_co2_monthly().month[co2.N_TRAIN - 1] == np.datetime64("1981-03")


def test_no_test_month_is_seen() -> None:
    task, other = (co2.CO2Task.of(series) for series in (load_co2_monthly(), forged()))
    assert task.scale == other.scale
    rows = torch.arange(co2.N_TRAIN)
    precisions = [co2.choose_precision(t, TINY, seed=0) for t in (task, other)]
    assert precisions[0] == precisions[1]
    nets = [co2.train(t, rows, TINY, precision=1.0, seed=0) for t in (task, other)]
    assert torch.equal(nets[0][0].weight, nets[1][0].weight)


def test_dropout_follows_each_non_linearity() -> None:
    net = co2.make_net(
        torch.linspace(-1.0, 1.0, 9)[:, None], 8, torch.Generator().manual_seed(0)
    )
    kinds = [type(layer).__name__ for layer in net]
    assert kinds == ["Linear", "ReLU", "Dropout"] * 3 + ["Linear"]


def test_the_report_is_in_ppm_and_of_the_test_months(tmp_path) -> None:
    """Error, log-likelihood and settings, recomputed in the units of the series."""
    report = co2.run(tmp_path, TINY, seed=0)
    task = co2.CO2Task.of(load_co2_monthly())
    tau = co2.choose_precision(task, TINY, seed=0)
    net = co2.train(task, torch.arange(co2.N_TRAIN), TINY, precision=tau, seed=0)
    test = slice(co2.N_TRAIN, None)
    mc = MCDropout(net, seed=0)
    found = mc.regress(task.x, n_draws=TINY.n_draws, precision=tau)[test]
    ppm = task.trend[test] + task.scale * found.mean[:, 0].double().numpy()
    error = np.sqrt(np.mean((ppm - task.series.value[test]) ** 2))
    assert report.error == pytest.approx(error, rel=1e-4)
    with torch.no_grad():
        plain = task.trend[test] + task.scale * net(task.x)[test, 0].double().numpy()
    error = np.sqrt(np.mean((plain - task.series.value[test]) ** 2))
    assert report.standard_error == pytest.approx(error, rel=1e-4)
    assert report.settings["noise sd (ppm)"] == pytest.approx(task.scale / tau**0.5)
    wide = found.draws.double() * task.scale
    in_ppm = GaussianPredictive.from_draws(wide, precision=tau / task.scale**2)
    observed = torch.from_numpy(task.residual[test])[:, None]
    log_prob = in_ppm.log_prob(observed).mean().item()
    assert report.log_likelihood == pytest.approx(log_prob, rel=1e-4)
    assert report.figure == tmp_path / "co2.png" and report.figure.exists()


def test_the_precision_is_the_best_of_the_grid_on_held_out_months() -> None:
    task = co2.CO2Task.of(load_co2_monthly())
    rows = torch.randperm(co2.N_TRAIN, generator=torch.Generator().manual_seed(0))
    held_out, rest = rows[:54], rows[54:]
    net = co2.train(task, rest, TINY, precision=1.0, seed=0)
    draws = MCDropout(net, seed=0).draws(task.x[held_out], n_draws=200)
    errors = (task.y[held_out] - draws).square()[..., 0].double()
    scores = [
        (0.5 * np.log(tau) + (-0.5 * tau * errors).logsumexp(0)).sum().item()
        for tau in co2.PRECISIONS
    ]
    best = co2.PRECISIONS[int(np.argmax(scores))]
    assert co2.choose_precision(task, TINY, seed=0) == best


def test_weight_decay_is_that_of_the_optimiser() -> None:
    """The number shown is the decay of the dropped layers (ledger E17)."""
    task = co2.CO2Task.of(load_co2_monthly())
    net = co2.make_net(
        torch.linspace(-1.0, 1.0, 9)[:, None], 8, torch.Generator().manual_seed(0)
    )
    groups = weight_decay_groups(
        net,
        precision=3.0,
        lengthscale=co2.LENGTHSCALE,
        n_train=co2.N_TRAIN,
        loss=Loss.half_squared_error(),
    )
    shown = co2._settings(task, TINY, 3.0)["weight decay"]
    assert max(g["weight_decay"] for g in groups) == pytest.approx(shown)


def test_the_picture_has_the_numbers_of_the_predictive() -> None:
    task = co2.CO2Task.of(load_co2_monthly())
    draws = torch.zeros(2, len(task.x), 1)
    found = co2.picture(task, GaussianPredictive.from_draws(draws, precision=4.0))
    lines = found.splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == [
        str(year) for year in range(1962, 2001, 4)
    ]
    assert all(line.endswith(f"± {task.scale:.1f}") for line in lines[1:-1])  # 2 sd
    assert all(len(line) <= 80 for line in lines)
