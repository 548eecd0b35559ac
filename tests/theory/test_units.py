"""Precision and density in the units of y."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from caveat.errors import ParameterError
from caveat.theory import (
    log_density_shift,
    precision_in_standard_units,
    precision_in_units_of_y,
)

POSITIVE = st.floats(1e-6, 1e6)


def double(values):
    return torch.tensor(values, dtype=torch.float64)


@given(tau=POSITIVE, std=POSITIVE)
def test_units_round_trip(tau, std):
    raw = precision_in_units_of_y(tau, std)
    assert precision_in_standard_units(raw, std) == pytest.approx(tau, rel=1e-12)


def test_density_and_precision_in_the_units_of_y():
    std, tau = double([10.0, 0.5]), double([4.0, 9.0])
    y, mean = double([3.0, 0.2]), double([1.0, 0.3])
    raw = precision_in_units_of_y(tau, std)
    noise = torch.distributions.Normal
    direct = noise(mean, raw.rsqrt()).log_prob(y).sum()
    standard = noise(mean / std, tau.rsqrt()).log_prob(y / std).sum()
    torch.testing.assert_close(standard + log_density_shift(std), direct)


def test_outputs_of_one_scale():
    assert log_density_shift(2.0, n_outputs=3) == pytest.approx(-3 * math.log(2))
    assert log_density_shift([2.0] * 3) == pytest.approx(-3 * math.log(2))
    with pytest.raises(ParameterError, match="leave n_outputs out"):
        log_density_shift([2.0, 3.0], n_outputs=2)


@pytest.mark.parametrize("std", [0.0, -1.0, math.inf])
def test_bad_scales(std):
    with pytest.raises(ParameterError, match="target_std"):
        precision_in_units_of_y(1.0, std)
    with pytest.raises(ParameterError, match="target_std"):
        log_density_shift([1.0, std])
