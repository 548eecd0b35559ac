"""The CO2 task is prepared from its training part alone, and chooses tau there."""

import dataclasses

import numpy as np
import pytest
import torch

from caveat.data import MonthlySeries, load_co2_monthly
from caveat.demo import co2

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
    kinds = [type(layer).__name__ for layer in co2.make_net(8)]
    assert kinds == ["Linear", "ReLU", "Dropout"] * 3 + ["Linear"]
