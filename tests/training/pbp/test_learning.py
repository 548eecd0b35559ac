"""Learning: stacks against single networks, known cases, extreme rows."""

import numpy as np
import pytest

from caveat.errors import ShapeError
from caveat.training.pbp import learn
from tests.training.pbp.examples import some_rows


@pytest.mark.parametrize("hidden", [(), (5,), (4, 3)])
def test_a_network_does_not_depend_on_its_neighbours(hidden):
    x, y = some_rows()
    settings = {"hidden": hidden, "n_epochs": 3}
    together = learn(x, y, seeds=[7, 8, 9], **settings)
    for k in range(3):
        alone = learn(x[k : k + 1], y[k : k + 1], seeds=[7 + k], **settings)
        own = together.only(k)
        for a, b in zip(own.layers, alone.layers, strict=True):
            np.testing.assert_allclose(a.mean, b.mean, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(a.variance, b.variance, rtol=1e-9)
        np.testing.assert_allclose(own.noise, alone.noise, rtol=1e-9)
        np.testing.assert_allclose(own.prior, alone.prior, rtol=1e-9)


def test_variances_stay_positive_under_extreme_rows():
    x, y = some_rows()
    x[0, 0], y[0, 1], x[1, 5], y[2, 3] = 1e6, 1e8, -1e12, -1e15
    found = learn(x, y, hidden=(6,), n_epochs=3, seeds=[0, 1, 2])
    assert all((w.variance > 0).all() for w in found.layers)
    assert (found.noise.mean_variance > 0).all()


def test_a_line_is_found_with_its_noise():
    generator = np.random.default_rng(2)
    x = generator.normal(size=(1, 400, 2))
    y = 0.8 * x[..., 0] - 0.3 * x[..., 1] + 0.1 + 0.2 * generator.normal(size=(1, 400))
    found = learn(x, y, hidden=(), n_epochs=5, seeds=[0])
    # Weights are divided by sqrt(3); five passes count each row five times
    expected = np.sqrt(3) * np.array([0.8, -0.3, 0.1])
    assert np.abs(found.layers[0].mean[0, 0] - expected).max() < 0.08
    exact = (6.0 + 2000 * 0.04 / 2) / (6.0 + 2000 / 2 - 1.0)
    assert found.noise.mean_variance[0] == pytest.approx(exact, rel=0.2)
    assert (found.layers[0].variance < 1e-2).all()


def test_shapes_that_do_not_fit_are_named():
    x, y = some_rows()
    with pytest.raises(ShapeError, match="a seed per network"):
        learn(x, y, seeds=[0])
    with pytest.raises(ShapeError, match="y \\(networks, rows\\)"):
        learn(x, y[:, :-1], seeds=[0, 1, 2])
