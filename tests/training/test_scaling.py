"""Standard units and the way back."""

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from caveat.theory import log_density_shift, precision_in_units_of_y
from caveat.training.likelihood import residuals
from caveat.training.scaling import Scaling


def some_rows(n_rows=30):
    rng = np.random.default_rng(0)
    x = rng.normal(3.0, [1.0, 20.0, 0.01], (n_rows, 3))
    return x, rng.normal(-100.0, [5.0, 0.2], (n_rows, 2))


def test_standard_units_have_mean_0_and_variance_1():
    x, y = some_rows()
    rows = Scaling.of(x, y).rows(x, y)
    for values in (rows.x, rows.y):
        assert values.dtype == torch.float32
        torch.testing.assert_close(
            values.mean(0), torch.zeros(values.shape[1]), atol=1e-5, rtol=0
        )
        torch.testing.assert_close(
            values.var(0, correction=0), torch.ones(values.shape[1])
        )


def test_the_way_back():
    x, y = some_rows()
    scaling = Scaling.of(x, y)
    back = scaling.outputs(scaling.targets(y))
    assert back.dtype == torch.float64
    np.testing.assert_allclose(back, y, rtol=1e-6)


def test_other_rows_keep_the_units_of_the_training_rows():
    x, y = some_rows()
    scaling = Scaling.of(x[:20], y[:20])
    expected = (x[20:] - x[:20].mean(0)) / x[:20].std(0)
    np.testing.assert_allclose(scaling.inputs(x[20:]), expected, rtol=1e-5, atol=1e-5)


def test_constant_columns_are_only_shifted():
    x, y = some_rows()
    x[:, 1], y[:, 0] = 0.1, 7.0  # the spread of 0.1 is not 0 but for rounding
    scaling = Scaling.of(x, y)
    assert scaling.x_std[1] == 1.0 and scaling.y_std[0] == 1.0
    rows = scaling.rows(x, y)
    assert rows.x[:, 1].abs().max() < 1e-7
    moved = x.copy()
    moved[:, 1] += 2.0
    torch.testing.assert_close(scaling.inputs(moved)[:, 1], torch.full((30,), 2.0))
    np.testing.assert_allclose(scaling.outputs(rows.y), y, rtol=1e-6)


@given(arrays(np.float64, (4, 2), elements=st.floats(-1e6, 1e6, width=32)))
def test_no_column_becomes_infinite(x):
    scaling = Scaling.of(x, x[:, :1])
    assert scaling.inputs(x).isfinite().all()


def test_precision_and_density_in_the_units_of_y():
    """E18 and E19, by the density of the same draws in both units."""
    rng = torch.Generator().manual_seed(0)
    y = 4.0 * torch.randn(20, 1, generator=rng, dtype=torch.float64) + 3.0
    scaling = Scaling.of(y.numpy(), y.numpy())
    outputs = torch.randn(50, 20, 1, generator=rng)
    s, tau = float(scaling.y_std[0]), 2.0
    standard = residuals(outputs, None, scaling.targets(y.numpy())).log_density(tau)
    in_units = residuals(scaling.outputs(outputs), None, y).log_density(
        precision_in_units_of_y(tau, s)
    )
    shift = log_density_shift(s)
    assert math.isclose(shift, -math.log(s))
    torch.testing.assert_close(in_units, standard.double() + shift, atol=1e-4, rtol=0)
