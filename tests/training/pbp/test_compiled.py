"""The compiled loop: the same networks as numpy's, and doing without it."""

import numpy as np
import pytest

from caveat._progress import ProgressBar
from caveat.errors import CaveatWarning
from caveat.training.building import NoLibraryError
from caveat.training.kernel import kernel_status
from caveat.training.pbp import compiled, learn
from tests.training.pbp.examples import some_networks, some_rows

needs_compiler = pytest.mark.skipif(
    not kernel_status().is_compiled, reason="there is no C compiler"
)
QUIET = ProgressBar("", None, False)


@pytest.fixture
def forgotten(monkeypatch):
    """As in a process that has not looked for the library yet."""
    monkeypatch.setattr(compiled, "_FOUND", [])


def stream(n_rows=60, n_inputs=4):
    """Rows as the loops take them: (rows, networks, inputs + 1)."""
    x, y = (np.swapaxes(a, 0, 1) for a in some_rows(n_rows=n_rows, n_inputs=n_inputs))
    return np.concatenate([x, np.ones((n_rows, 3, 1))], -1), np.ascontiguousarray(y)


@needs_compiler
@pytest.mark.parametrize("hidden", [(), (1,), (5,), (50,), (6, 3), (4, 9, 2)])
@pytest.mark.parametrize("n_inputs", [1, 4])
def test_both_roads_lead_to_the_same_networks(hidden, n_inputs):
    networks = some_networks(hidden, n_inputs=n_inputs)
    x, y = stream(n_inputs=n_inputs)
    a = compiled.by_numpy(networks, x, y, QUIET)
    b = compiled.by_kernel(compiled._functions(), networks, x, y, QUIET)
    for own, other in zip(compiled._arrays(a), compiled._arrays(b), strict=True):
        assert own.shape == other.shape
        np.testing.assert_allclose(own, other, rtol=1e-6, atol=1e-9)


@needs_compiler
def test_updates_that_are_left_out_are_the_same_ones():
    networks = some_networks((5,))
    x, y = stream()
    x[3, 0, :-1], y[7, 1], x[9, 2, 0], y[11, 0] = 1e9, 1e12, -1e160, 1e200
    a = compiled.by_numpy(networks, x, y, QUIET)
    b = compiled.by_kernel(compiled._functions(), networks, x, y, QUIET)
    for own, other in zip(compiled._arrays(a), compiled._arrays(b), strict=True):
        assert np.isfinite(own).all()
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-7)


@needs_compiler
def test_networks_that_are_given_stay_as_they_are():
    networks = some_networks((5,))
    before = [a.copy() for a in compiled._arrays(networks)]
    compiled.by_kernel(compiled._functions(), networks, *stream(), QUIET)
    for own, other in zip(before, compiled._arrays(networks), strict=True):
        np.testing.assert_array_equal(own, other)


@needs_compiler
def test_rows_of_several_calls_are_those_of_one(monkeypatch):
    networks = some_networks((5,))
    whole = compiled.by_kernel(compiled._functions(), networks, *stream(), QUIET)
    monkeypatch.setattr(compiled, "_AT_ONCE", 7)
    parts = compiled.by_kernel(compiled._functions(), networks, *stream(), QUIET)
    for own, other in zip(
        compiled._arrays(whole), compiled._arrays(parts), strict=True
    ):
        np.testing.assert_array_equal(own, other)


def test_learning_without_it_is_the_same(monkeypatch):
    x, y = some_rows()
    settings = {"hidden": (5,), "n_epochs": 2, "seeds": [0, 1, 2]}
    found = learn(x, y, **settings)
    monkeypatch.setenv("CAVEAT_KERNEL", "off")
    assert compiled._functions() is None
    for own, other in zip(
        compiled._arrays(found), compiled._arrays(learn(x, y, **settings)), strict=True
    ):
        np.testing.assert_allclose(own, other, rtol=1e-6, atol=1e-9)


def test_without_a_compiler_numpy_learns(forgotten, monkeypatch):
    def missing(_):
        raise NoLibraryError("there is no C compiler")

    monkeypatch.setattr(compiled, "library", missing)
    assert compiled._functions() is None


@needs_compiler
def test_a_library_that_disagrees_is_not_used(forgotten, monkeypatch):
    wrong = compiled.by_numpy

    def other(networks, x, y, bar):
        return wrong(networks, x, y + 1e-3, bar)

    monkeypatch.setattr(compiled, "by_numpy", other)
    with pytest.warns(CaveatWarning, match="does not agree"):
        assert compiled._functions() is None
    assert compiled._functions() is None  # without another warning
