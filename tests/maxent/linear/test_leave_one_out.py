"""Leave-one-out against refits, and the worked example."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

from caveat.maxent.linear import (
    Design,
    Features,
    VariancePrior,
    effective_degrees_of_freedom,
    exact_leave_one_out,
    fast_leave_one_out,
    fit_posterior,
    generalised_cross_validation,
    make_noise,
)
from caveat.maxent.linear.intercept import UNDROPPED, WITHOUT
from tests.maxent.linear.reference import Y, random_data, worked_example


def test_worked_example():
    posterior = fit_posterior(worked_example(), Y)
    fast = [0.963861488923, 0.051835718676, 0.349839525828, 0.712236392227]
    exact = [0.912999748648, 0.013714495327, 0.342580745148, 0.701896330393]
    assert_allclose(fast_leave_one_out(posterior).residuals, fast, atol=1e-12)
    assert_allclose(exact_leave_one_out(posterior).residuals, exact, atol=1e-12)
    gcv = generalised_cross_validation(posterior)
    assert_allclose(gcv, 0.387076422418, atol=1e-12)
    freedom = effective_degrees_of_freedom(posterior)
    assert_allclose(freedom, 0.892227222425, atol=1e-12)


@pytest.mark.parametrize("shape", [(12, 4), (7, 15)])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [WITHOUT, UNDROPPED])
@pytest.mark.parametrize("prior", [VariancePrior(), VariancePrior(1.2, 0.5)])
def test_fast_is_exact_if_nothing_is_dropped(shape, sparse, intercept, prior):
    x, y = random_data(*shape, sparse=sparse)
    design = Design(Features(x), make_noise(0.0, shape[1]), 0.7, intercept)
    posterior = fit_posterior(design, y, prior=prior)
    fast, exact = fast_leave_one_out(posterior), exact_leave_one_out(posterior)
    assert fast.df == exact.df
    assert_allclose(fast.residuals, exact.residuals, rtol=1e-8)
    assert_allclose(fast.scales, exact.scales, rtol=1e-8)
    assert_allclose(fast.log_densities, exact.log_densities, rtol=1e-8)


def test_log_densities_are_student_t():
    loo = fast_leave_one_out(fit_posterior(worked_example(), Y))
    law = scipy.stats.t(loo.df, scale=loo.scales)
    assert_allclose(loo.log_densities, law.logpdf(loo.residuals))
    assert_allclose(loo.mean_squared_error, np.mean(loo.residuals**2))


def test_the_fast_form_improves_like_one_over_n():
    gaps = []
    for n in (25, 100, 400):
        x, y = random_data(n, 5)
        posterior = fit_posterior(Design(Features(x), make_noise(0.4, 5), 0.1), y)
        fast, exact = fast_leave_one_out(posterior), exact_leave_one_out(posterior)
        gap = np.abs(fast.residuals - exact.residuals).mean()
        gaps.append(gap / np.abs(exact.residuals).mean())
    assert gaps[1] < gaps[0] / 2 and gaps[2] < gaps[1] / 2


@pytest.mark.parametrize("intercept", [WITHOUT, UNDROPPED])
def test_degrees_of_freedom_are_the_trace_of_the_hat_matrix(intercept):
    x, y = random_data(9, 4)
    design = Design(Features(x), make_noise(0.3, 4), 0.7, intercept)

    def fitted(response):
        posterior = fit_posterior(design, response)
        return response - posterior.residual

    hat = np.column_stack([fitted(row) for row in np.eye(9)])
    posterior = fit_posterior(design, y)
    assert_allclose(effective_degrees_of_freedom(posterior), np.trace(hat))
