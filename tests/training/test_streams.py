"""The randomness of members: their rows, their noise, their first weights."""

import numpy as np
import pytest
import torch

from caveat.training import NetworkSpec, Schedule
from caveat.training.members import Architecture
from caveat.training.streams import (
    RowOrder,
    combined_seed,
    factor_source,
    first_weights,
    generator,
    mask_seed,
)
from tests.statistics import assert_mean_is

ARCHITECTURE = Architecture(4, (6,), 1)


@pytest.mark.parametrize("keep_last", [True, False])
def test_an_epoch_visits_each_row_once(keep_last):
    schedule = Schedule(batch_size=8, keep_last=keep_last)
    order = RowOrder(30, schedule, seed=1)
    for _ in range(3):
        seen = order.take(schedule.steps_per_epoch(30)).ravel()
        seen = seen[seen >= 0]
        assert len(set(seen)) == len(seen) == (30 if keep_last else 24)


def test_orders_do_not_depend_on_how_many_are_taken():
    schedule = Schedule(batch_size=8, keep_last=True)
    at_once = RowOrder(30, schedule, seed=1).take(20)
    order = RowOrder(30, schedule, seed=1)
    one_by_one = np.concatenate([order.take(n) for n in (1, 7, 3, 9)])
    assert (at_once == one_by_one).all()
    assert (RowOrder(30, schedule, seed=2).take(20) != at_once).any()


def a_source(*rates, noise="bernoulli"):
    return factor_source(NetworkSpec(noise=noise), rates, ARCHITECTURE.fan_ins)


@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
def test_factors_have_mean_one_and_the_variance_of_dropout(noise):
    source = a_source((0.05, 0.05), (0.5, 0.5), noise=noise)
    raw = np.stack([source.raw(generator(i, 2), 1, 20_000)[0] for i in range(2)])
    for factors in source.factors(torch.from_numpy(raw), 20_000):
        assert_mean_is(factors.transpose(0, 1), torch.ones(2, factors.shape[-1]))
        expected = torch.tensor([0.05 / 0.95, 1.0])[:, None].expand(
            -1, factors.shape[-1]
        )
        squares = (factors - 1).square().transpose(0, 1)
        assert_mean_is(squares, expected)


def test_dropped_units_are_zero_and_the_others_scaled():
    source = a_source((0.25, 0.25))
    raw = source.raw(generator(0, 2), 1, 100)
    for factors in source.factors(torch.from_numpy(raw), 100):
        assert factors.unique().tolist() == pytest.approx([0.0, 1 / 0.75])


def test_a_layer_without_noise_has_no_factors():
    source = a_source((0.0, 0.5))
    raw = source.raw(generator(0, 2), 1, 3)
    first, second = source.factors(torch.from_numpy(raw), 3)
    assert first is None and second.shape == (1, 3, 6)


def test_first_weights_are_glorots():
    flat = first_weights(Architecture(100, (200,), 1), seed=0)
    weights, biases = flat[:20_000], flat[20_000:20_200]
    limit = np.sqrt(6 / 300)
    assert np.abs(weights).max() <= limit
    assert_mean_is(
        torch.from_numpy(weights.astype(float) ** 2), torch.tensor(limit**2 / 3)
    )
    assert (biases == 0).all()


ORDER = [[3, 0, 2], [7, 1, 8], [4, 6, 5]]
BITS = [-28246, -16128, -27995, 18408, -10827, -6401]
BITS += [6095, 5103, 22943, -4121, -14734, 16851]
COMBINED = 12997252459554536576


def test_streams_are_what_they_have_always_been():
    """Whole numbers, so the same on every machine: stored results rest on them."""
    order = RowOrder(9, Schedule(batch_size=3), seed=5).take(3)
    bits = a_source((0.5, 0.5)).raw(generator(7, 2), 1, 1)
    assert order.tolist() == ORDER
    assert bits[0].tolist() == BITS
    assert combined_seed(1, 2, 3) == COMBINED and mask_seed(1, 2, 3) == COMBINED >> 1
