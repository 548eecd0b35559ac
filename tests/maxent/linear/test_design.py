"""The smaller form is chosen, and the p by p matrix is never made for wide data."""

import numpy as np
import pytest
import scipy.sparse as sp

from caveat.maxent.linear import Design, Features, fit_posterior, make_noise
from caveat.maxent.linear.factors import DualFactor, PrimalFactor
from caveat.maxent.linear.intercept import UNDROPPED
from caveat.maxent.linear.rows import ShiftedRows
from tests.maxent.linear.reference import random_data


@pytest.mark.parametrize(
    ("shape", "kind"), [((9, 4), PrimalFactor), ((4, 9), DualFactor)]
)
def test_the_form_follows_the_shape(shape, kind):
    x, _ = random_data(*shape)
    assert type(Design(Features(x), make_noise(0.2, shape[1]), 1.0).factor) is kind


def test_wide_sparse_data_stay_sparse(monkeypatch):
    def fail(self):
        raise AssertionError("a p by p matrix or a dense copy was made")

    monkeypatch.setattr(ShiftedRows, "scatter", fail)
    monkeypatch.setattr(ShiftedRows, "dense", fail)
    x = sp.random_array((30, 50_000), density=1e-3, rng=np.random.default_rng(0))
    x = x.tocsr()
    y = np.random.default_rng(1).normal(size=30)
    design = Design(Features(x), make_noise(0.5, 50_000), 1.0, UNDROPPED)
    posterior = fit_posterior(design, y)
    location, leverage = posterior.predict(x[:5], design.noise.mean)
    assert np.isfinite(location).all() and (leverage > 0).all()
    assert posterior.covariance([0, 7]).shape == (2, 2)
