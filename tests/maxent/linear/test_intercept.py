"""The two readings of an intercept, against models with an explicit column."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from caveat.errors import ParameterError
from caveat.maxent.linear import (
    Design,
    Features,
    fit_posterior,
    make_intercept,
    make_noise,
)
from caveat.maxent.linear.intercept import DROP_TO_MEAN, UNDROPPED
from tests.maxent.linear.reference import (
    X,
    Y,
    random_data,
    second_moment,
    worked_example,
)


def test_worked_example_with_an_undropped_intercept():
    posterior = fit_posterior(worked_example(UNDROPPED), Y)
    assert_allclose(posterior.mean, [0.306037868551, 0.078117244635], atol=1e-12)
    assert_allclose(posterior.misfit, 0.607345013661, atol=1e-12)
    assert posterior.shape == 1.5


@pytest.mark.parametrize("shape", [(9, 4), (6, 11)])
@pytest.mark.parametrize("sparse", [False, True])
def test_undropped_intercept_is_a_column_of_ones_that_is_never_dropped(shape, sparse):
    x, y = random_data(*shape, sparse=sparse)
    posterior = fit_posterior(
        Design(Features(x), make_noise(0.3, shape[1]), 0.7, UNDROPPED), y
    )
    dense = x.toarray() if sparse else x
    wide = np.column_stack([np.ones(len(y)), dense])
    noise = make_noise(np.append(0.0, np.full(shape[1], 0.3)), shape[1] + 1)
    prior = np.diag(np.append(0.0, np.full(shape[1], 0.7)))  # flat for the ones
    precision = prior + (wide.T @ wide) * second_moment(noise)
    mean = np.linalg.solve(precision, noise.mean * (wide.T @ y))
    assert_allclose(posterior.mean, mean[1:], rtol=1e-9, atol=1e-11)
    assert_allclose(posterior.intercept, mean[0], rtol=1e-9)
    assert_allclose(posterior.misfit, y @ y - mean @ precision @ mean, rtol=1e-9)
    new = np.random.default_rng(5).normal(size=(3, shape[1]))
    for factor in (posterior.design.noise.mean, np.ones(shape[1])):
        location, leverage = posterior.predict(new, factor)
        directions = np.column_stack([np.ones(3), factor * new])
        assert_allclose(location, directions @ mean, rtol=1e-9)
        spread = directions @ np.linalg.solve(precision, directions.T)
        assert_allclose(leverage, np.diag(spread), rtol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_dropping_to_the_mean_is_centring_first(sparse):
    x, y = random_data(8, 5, sparse=sparse)
    noise = make_noise(0.4, 5)
    posterior = fit_posterior(Design(Features(x), noise, 0.2, DROP_TO_MEAN), y)
    dense = x.toarray() if sparse else x
    centred = dense - dense.mean(0)
    plain = fit_posterior(Design(Features(centred), noise, 0.2), y - y.mean())
    assert_allclose(posterior.mean, plain.mean)
    assert_allclose(posterior.misfit, plain.misfit)
    new = np.random.default_rng(5).normal(size=(3, 5))
    for factor in (noise.mean, np.ones(5)):
        location, leverage = posterior.predict(new, factor)
        expected = plain.predict(new - dense.mean(0), factor)
        assert_allclose(location, y.mean() + expected[0])
        assert_allclose(leverage, 1 / 8 + expected[1])


def test_the_readings_differ():
    zero, mean = (
        fit_posterior(worked_example(kind), Y) for kind in (UNDROPPED, DROP_TO_MEAN)
    )
    assert np.abs(zero.mean - mean.mean).max() > 1e-3
    assert_allclose(X.mean(0) @ mean.effective_weights + mean.intercept, Y.mean())


def test_wrong_readings():
    with pytest.raises(ParameterError, match=r"'zero', 'mean'\. Got 'median'"):
        make_intercept(True, "median")
    with pytest.raises(ParameterError, match="needs fit_intercept=True"):
        make_intercept(False, "mean")
