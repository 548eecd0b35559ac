"""What a marker means: units, data axes, rates, and nothing outside a transform."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.maxent import dropout
from caveat.maxent.markers import answering


def masked(mask, value, rate=0.5, **how):
    with answering(lambda marker: mask):
        return np.asarray(dropout("w", value, rate, **how))


def test_outside_a_transform_nothing_happens():
    value = jnp.arange(3.0)
    assert dropout("w", value, 0.5) is value
    with pytest.raises(RuntimeError), answering(lambda marker: np.zeros(3)):
        assert dropout("w", value, 0.5).tolist() == [0.0, 0.0, 0.0]
        raise RuntimeError
    assert dropout("w", value, 0.5) is value


def test_units_of_a_matrix():
    value = np.arange(6.0).reshape(2, 3)
    rows, columns, each = np.array([0, 1]), np.array([1, 0, 1]), np.arange(6) % 2
    np.testing.assert_array_equal(masked(rows, value, units=0), value * rows[:, None])
    np.testing.assert_array_equal(masked(columns, value, units=-1), value * columns)
    np.testing.assert_array_equal(
        masked(each, value, units=(0, 1)), value * each.reshape(2, 3)
    )
    np.testing.assert_array_equal(
        masked(each, value, units=(1, 0)), value * each.reshape(3, 2).T
    )


def test_masks_of_every_datum():
    value = np.arange(6.0).reshape(2, 3) + 1
    own = np.array([[0, 1, 1], [1, 1, 0]])
    np.testing.assert_array_equal(masked(own, value, units=1, data=0), value * own)
    np.testing.assert_array_equal(
        masked(own, value.T, units=0, data=1), (value * own).T
    )


@settings(max_examples=12, deadline=None)
@given(st.permutations([0, 1, 2]), st.integers(0, 2**12 - 1))
def test_any_order_of_axes(axes, bits):
    value = np.arange(24.0).reshape(2, 3, 4) + 1
    first, second, data = axes
    sizes = [value.shape[axis] for axis in (data, first, second)]
    n_units = sizes[1] * sizes[2]
    mask = np.array([(bits >> (i % 12)) & 1 for i in range(sizes[0] * n_units)])
    found = masked(
        mask.reshape(sizes[0], n_units), value, units=(first, second), data=data
    )
    whole = np.moveaxis(mask.reshape(sizes), (0, 1, 2), (data, first, second))
    np.testing.assert_array_equal(found, value * whole)


@pytest.mark.parametrize(
    ("how", "error", "match"),
    [
        ({"rate": 1.5}, ParameterError, r"in \[0, 1\]. Got 1.5"),
        ({"rate": float("nan")}, ParameterError, "Got nan"),
        ({"rate": [0.1, 0.2]}, ShapeError, r"\(3,\) of its units. Got \(2,\)"),
        ({"name": 3}, InputTypeError, "Got 3"),
        ({"units": 1}, ParameterError, "must fit its value of shape"),
        ({"units": "rows"}, InputTypeError, "Got 'rows'"),
        ({"units": ()}, ParameterError, "at least one"),
        ({"data": 0}, ParameterError, "must not be one of its units"),
        ({"value": np.ones((2, 3))}, ParameterError, "units= must say"),
        ({"rate": "often"}, InputTypeError, "Got 'often'"),
        ({"value": 1.0, "units": 0}, ParameterError, r"shape \(\)"),
    ],
)
def test_bad_arguments(how, error, match):
    with pytest.raises(error, match=match):
        dropout(**({"name": "w", "value": np.ones(3), "rate": 0.5} | how))
