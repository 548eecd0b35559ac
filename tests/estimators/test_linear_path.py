"""Paths against single fits."""

import doctest

import numpy as np
import pytest
from numpy.testing import assert_allclose

from caveat.errors import ParameterError, ShapeError
from caveat.estimators import BayesianDropoutRegression, dropout_path
from caveat.estimators.linear import path as module
from tests.maxent.linear.reference import random_data


def single_fits(x, y, path, fit_intercept):
    return np.column_stack(
        [
            BayesianDropoutRegression(f, p, fit_intercept=fit_intercept).fit(x, y).coef_
            for f, p in zip(path.rates, path.prior_precisions, strict=True)
        ]
    )


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("rates", "priors"),
    [
        ([0.0, 0.5, 0.9], {"prior_precision": 0.7}),
        (0.4, {"prior_precision": [0.1, 1.0, 10.0]}),
        ([0.0, 0.5], {"prior_precision": [3.0, 0.2]}),
        ([0.1, 0.5, 0.9], {"prior_ratio": 2.0}),
    ],
)
def test_a_path_is_a_fit_per_setting(fit_intercept, sparse, rates, priors):
    x, y = random_data(20, 8, sparse=sparse)
    path = dropout_path(x, y, rates, fit_intercept=fit_intercept, **priors)
    assert path.coefs.shape == (8, len(path.rates))
    expected = single_fits(x, y, path, fit_intercept)
    assert_allclose(path.coefs, expected, rtol=1e-6, atol=1e-9)


def test_the_ratio_sets_the_precisions():
    x, y = random_data(20, 8)
    path = dropout_path(x, y, [0.5, 0.1], prior_ratio=2.0)
    assert_allclose(path.prior_precisions, [0.5, 0.18])


def test_wrong_settings():
    x, y = random_data(20, 8)
    with pytest.raises(ParameterError, match=r"above 0, as lambda0 .* Got 0\.0"):
        dropout_path(x, y, [0.0, 0.5], prior_ratio=1.0)
    with pytest.raises(ShapeError, match=r"shapes \(2,\) and \(3,\)"):
        dropout_path(x, y, [0.1, 0.5], prior_precision=[1.0, 2.0, 3.0])
    with pytest.raises(ShapeError, match=r"shapes \(0,\)"):
        dropout_path(x, y, [])
    with pytest.raises(ParameterError, match=r"\[0, 1\)"):
        dropout_path(x, y, [0.5, 1.0])
    with pytest.raises(ParameterError, match="prior_precision"):
        dropout_path(x, y, [0.5], prior_precision=-1.0)


def test_examples():
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
