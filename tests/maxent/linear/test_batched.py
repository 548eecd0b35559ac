"""Many data sets at once against one fit each."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from caveat.errors import ParameterError, ShapeError
from caveat.maxent.linear import Design, Features, batched, fit_posterior, make_noise
from caveat.maxent.linear.batched import batched_predictions

SETTINGS = [(0.4, 0.5), (0.0, 1.0), (0.9, 1e-3), (0.0, 5.0)]


@pytest.mark.parametrize("p", [3, 6, 14])
@pytest.mark.parametrize("chunk", [1, 1 << 21])
@pytest.mark.parametrize("many", [2, 10])  # ridge settings by eigenvalues, by solving
def test_each_set_is_fitted_by_itself(monkeypatch, p, chunk, many):
    monkeypatch.setattr(batched, "_MANY", many)
    monkeypatch.setattr(batched, "_CHUNK", chunk)
    rng = np.random.default_rng(0)
    x, y, new = (rng.normal(size=s) for s in ((5, 6, p), (5, 6), (5, 2, p)))
    found = batched_predictions(x, y, new, SETTINGS)
    assert found.shape == (4, 5, 2)
    for number, (rate, precision) in enumerate(SETTINGS):
        for one in range(5):
            noise = make_noise(rate, p)
            posterior = fit_posterior(
                Design(Features(x[one]), noise, precision), y[one]
            )
            expected, _ = posterior.predict(new[one], noise.mean)
            assert_allclose(found[number, one], expected, rtol=1e-8, atol=1e-10)


def test_wrong_input():
    x, y = np.ones((3, 4, 2)), np.ones((3, 4))
    with pytest.raises(ShapeError, match=r"\(sets, n\).*Got \(3, 4, 2\), \(3, 4\) and"):
        batched_predictions(x, y, np.ones((3, 4, 3)), SETTINGS)
    with pytest.raises(ParameterError, match=r"must be above 0\. Got 0"):
        batched_predictions(x, y, x, [(0.5, 0.0)])
    with pytest.raises(ParameterError, match=r"Got 1\.0 at settings"):
        batched_predictions(x, y, x, [(1.0, 1.0)])
