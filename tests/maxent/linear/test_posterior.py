"""The posterior against the worked example, naive algebra and every mask."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from caveat.errors import CaveatWarning
from caveat.maxent.linear import (
    Design,
    Features,
    VariancePrior,
    fit_posterior,
    make_noise,
)
from caveat.maxent.linear.intercept import DROP_TO_MEAN, UNDROPPED, WITHOUT
from tests.maxent.linear.reference import (
    NEW,
    X,
    Y,
    expected_log_likelihood,
    masks_and_chances,
    naive_posterior,
    random_data,
    worked_example,
)
from tests.statistics import assert_mean_is, assert_variance_is


def test_worked_example():
    posterior = fit_posterior(worked_example(), Y)
    assert_allclose(posterior.mean, [0.677269288047, 0.308594862033], atol=1e-12)
    assert_allclose(posterior.misfit, 1.49963993109208, atol=1e-13)
    assert posterior.shape == 2.0
    assert_allclose(posterior.rate, 0.74981996554604, atol=1e-13)
    assert_allclose(posterior.noise_variance, 0.749819965546, atol=1e-12)
    covariance = [[0.462556304108, 0.032663591321], [0.032663591321, 0.290698846505]]
    assert_allclose(posterior.covariance(), covariance, atol=1e-12)
    alpha = [0.701059968562, 0.040356328468, 0.260067658957, 0.611450302654]
    assert_allclose(posterior.residual, alpha, atol=1e-12)
    white = posterior.design.whitening
    assert_allclose(1 / white.inverse**2, [0.9536, 1.34])  # the diagonal of A
    log_det = white.log_det + posterior.design.factor.log_det
    assert_allclose(log_det, 1.43857628864861, atol=1e-12)


def test_worked_example_predicts():
    posterior = fit_posterior(worked_example(), Y)
    for factor, location, squared_scale in (
        (0.6, 0.080780492038, 0.469967310050),
        (1.0, 0.134634153397, 0.638958114098),
    ):
        found, leverage = posterior.predict(NEW, np.full(2, factor))
        assert_allclose(found, [location], atol=1e-12)
        squared = posterior.noise_scale**2 * (1 + leverage)
        assert_allclose(squared, [squared_scale], atol=1e-12)


def test_density_is_prior_times_likelihoods_of_all_masks():
    """Eq. 10: log posterior = log prior + E_m log-likelihood + constant."""
    x, y = random_data(6, 3)
    rates, prior = np.array([0.0, 0.4, 0.7]), VariancePrior(1.5, 0.8)
    design = Design(Features(x), make_noise(rates, 3), 0.6)
    posterior = fit_posterior(design, y, prior=prior)
    inverse = posterior.covariance() / posterior.noise_variance
    rng = np.random.default_rng(3)
    constants = []
    for _ in range(6):
        w, v = rng.normal(size=3), rng.gamma(2.0)
        target = expected_log_likelihood(x, y, w, v, rates)
        target += scipy.stats.multivariate_normal(cov=v / 0.6 * np.eye(3)).logpdf(w)
        target += scipy.stats.invgamma(1.5, scale=0.8).logpdf(v)
        ours = scipy.stats.multivariate_normal(posterior.mean, v * inverse).logpdf(w)
        ours += posterior.variance_distribution().logpdf(v)
        constants.append(target - ours)
    assert_allclose(constants, constants[0], rtol=1e-9)


def test_weights_are_student_t():
    posterior = fit_posterior(worked_example(), Y)
    w = np.array([0.2, -0.3])
    inverse = posterior.covariance() / posterior.noise_variance
    v = np.exp(np.linspace(-12, 12, 4001))
    joint = posterior.variance_distribution().pdf(v) * np.array(
        [
            scipy.stats.multivariate_normal(posterior.mean, each * inverse).pdf(w)
            for each in v
        ]
    )
    marginal = np.trapezoid(joint * v, np.log(v))
    assert_allclose(posterior.weight_distribution().pdf(w), marginal, rtol=1e-7)
    second = posterior.weight_distribution([1])
    assert_allclose(second.loc, posterior.mean[1:])
    assert_allclose(second.shape, posterior.covariance()[1:, 1:] / 2)  # 4 d.f.


@pytest.mark.parametrize("kind", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("shape", [(15, 6), (6, 15)])
@pytest.mark.parametrize("sparse", [False, True])
def test_primal_dual_and_krylov_agree_with_the_definition(kind, shape, sparse):
    x, y = random_data(*shape, sparse=sparse)
    rates = np.linspace(0.0, 0.8, shape[1])
    noise = make_noise(rates, shape[1], kind=kind)
    dense = x.toarray() if sparse else x
    precision, mean, misfit = naive_posterior(dense, y, noise, 0.3)
    design = Design(Features(x), noise, 0.3)
    for solver in ("exact", "primal", "dual", "krylov"):
        posterior = fit_posterior(design, y, solver=solver, tol=1e-13)
        assert_allclose(posterior.mean, mean, rtol=1e-8, atol=1e-10, err_msg=solver)
        assert_allclose(posterior.misfit, misfit, rtol=1e-8, err_msg=solver)
    expected = np.linalg.inv(precision) * posterior.noise_variance
    assert_allclose(posterior.covariance(), expected, rtol=1e-8, atol=1e-10)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 1000),
    rate=st.floats(0.05, 0.95),
    shape=st.sampled_from([(8, 3), (4, 9)]),
    intercept=st.sampled_from([WITHOUT, UNDROPPED, DROP_TO_MEAN]),
)
def test_without_a_prior_rescaling_features_changes_nothing(
    seed, rate, shape, intercept
):
    x, y = random_data(*shape, seed=seed)
    scale = np.exp(3 * np.random.default_rng(seed).normal(size=shape[1]))
    noise = make_noise(rate, shape[1])
    plain, scaled = (
        fit_posterior(Design(Features(data), noise, 0.0, intercept), y)
        for data in (x, x * scale)
    )
    assert_allclose(scaled.mean * scale, plain.mean, rtol=1e-6, atol=1e-8)
    assert_allclose(scaled.misfit, plain.misfit, rtol=1e-8)


@pytest.mark.parametrize("intercept", [WITHOUT, UNDROPPED])
def test_gaussian_noise_is_bernoulli_noise_in_other_units(intercept):
    x, y = random_data(12, 5)
    rate = 0.35
    gaussian = fit_posterior(
        Design(Features(x), make_noise(rate, 5, kind="gaussian"), 0.8, intercept), y
    )
    bernoulli = fit_posterior(
        Design(Features(x), make_noise(rate, 5), 0.8 * (1 - rate) ** 2, intercept), y
    )
    assert_allclose(gaussian.mean, (1 - rate) * bernoulli.mean)
    assert_allclose(gaussian.misfit, bernoulli.misfit)
    assert_allclose(gaussian.covariance(), (1 - rate) ** 2 * bernoulli.covariance())


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_nothing_dropped_is_ridge_regression(fit_intercept):
    x, y = random_data(20, 5)
    intercept = UNDROPPED if fit_intercept else WITHOUT
    posterior = fit_posterior(
        Design(Features(x), make_noise(0.0, 5), 2.0, intercept), y
    )
    ridge = Ridge(alpha=2.0, fit_intercept=fit_intercept).fit(x, y)
    assert_allclose(posterior.mean, ridge.coef_)
    assert_allclose(posterior.intercept, ridge.intercept_, atol=1e-12)


def test_flat_prior_is_least_squares():
    x, y = random_data(20, 5)
    posterior = fit_posterior(Design(Features(x), make_noise(0.0, 5), 0.0), y)
    expected, squares, *_ = np.linalg.lstsq(x, y)
    assert_allclose(posterior.mean, expected)
    assert_allclose(posterior.misfit, squares[0])


def test_only_univariate_fits_are_left_as_the_rate_tends_to_one():
    x, y = random_data(20, 5)
    posterior = fit_posterior(Design(Features(x), make_noise(1 - 1e-9, 5), 0.0), y)
    assert_allclose(posterior.mean, x.T @ y / (x**2).sum(0), rtol=1e-6)


def test_dropout_training_ends_at_the_mean():
    """The penalised dropout loss of paper 001 with lambda0 = 2 N lambda."""
    x, y = random_data(8, 3)
    n, rate, penalty = 8, 0.3, 0.05
    posterior = fit_posterior(
        Design(Features(x), make_noise(rate, 3), 2 * n * penalty), y
    )
    masks, chances = masks_and_chances(np.full(3, rate))
    gradient = 2 * penalty * posterior.mean
    for mask, chance in zip(masks, chances, strict=True):
        gap = x @ (mask * posterior.mean) - y
        gradient += chance * mask * (x.T @ gap) / n
    assert_allclose(gradient, 0.0, atol=1e-12)


def test_marginalised_corrupted_features_are_the_effective_weights():
    """Blank-out noise that divides by 1 - f what it keeps, without a prior."""
    (x, y), rate = random_data(8, 3), 0.3
    posterior = fit_posterior(Design(Features(x), make_noise(rate, 3), 0.0), y)
    masks, chances = masks_and_chances(np.full(3, rate))
    left, right = np.zeros((3, 3)), np.zeros(3)
    for mask, chance in zip(masks, chances, strict=True):
        corrupted = x * mask / (1 - rate)
        left += chance * corrupted.T @ corrupted
        right += chance * corrupted.T @ y
    assert_allclose(np.linalg.solve(left, right), posterior.effective_weights)
    assert_allclose(posterior.effective_weights, (1 - rate) * posterior.mean)


def test_weights_of_larger_features_are_penalised_more():
    """Ridge has one penalty for all; dropout adds f (1 - f) times the squares."""
    x, y = random_data(8, 3)
    x[:, 1] *= 10.0 * np.linalg.norm(x[:, 0]) / np.linalg.norm(x[:, 1])
    penalties = []
    for rate in (0.0, 0.3):
        posterior = fit_posterior(Design(Features(x), make_noise(rate, 3), 0.5), y)
        precision = np.linalg.inv(posterior.covariance() / posterior.noise_variance)
        penalties.append(np.diag(precision - (1 - rate) ** 2 * x.T @ x))
    assert_allclose(penalties[0], 0.5)
    grown = penalties[1] - 0.5
    assert_allclose(grown, 0.21 * np.square(x).sum(0))
    assert grown[1] == pytest.approx(100 * grown[0])


@pytest.mark.parametrize(
    ("kind", "conjugate"), [(scipy.stats.invgamma, True), (scipy.stats.gamma, False)]
)
def test_the_conjugate_prior_of_the_variance_is_the_inverse_gamma(kind, conjugate):
    """Prior times the likelihood v^(-n/2) exp(-s/2v) is of the prior's kind again.

    Their log densities are constant + (a - 1) log v - b v, or the same in 1/v.
    """
    v = np.array([0.3, 0.7, 1.1, 2.0, 3.7])
    log_density = kind(1.5).logpdf(v) - 2.0 * np.log(v) - 0.6 / v
    columns = np.stack([np.ones(5), np.log(v), 1 / v if conjugate else v], 1)
    left = np.linalg.lstsq(columns, log_density, rcond=None)[1]
    assert (left < 1e-20).all() is np.bool_(conjugate)
    x, y = random_data(8, 3)
    design = Design(Features(x), make_noise(0.3, 3), 0.5)
    nearly = fit_posterior(design, y, prior=VariancePrior(1e-9, 1e-9))
    jeffreys = fit_posterior(design, y)
    assert_allclose([nearly.shape, nearly.rate], [jeffreys.shape, jeffreys.rate])


def test_a_tight_fit_keeps_its_digits():
    """s = y'y - mu'Lambda mu would be nothing but rounding here."""
    x, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 3.0 + 1e-8])
    noise, precision = make_noise(0.0, 1), 1e-14
    exact_x = [Fraction(float(v)) for v in x[:, 0]]
    exact_y = [Fraction(float(v)) for v in y]
    cross = sum(a * b for a, b in zip(exact_x, exact_y, strict=True))
    total = Fraction(precision) + sum(a * a for a in exact_x)
    exact = float(sum(b * b for b in exact_y) - cross * cross / total)
    _, _, naive = naive_posterior(x, y, noise, precision)
    assert abs(naive / exact - 1) > 0.01
    for solver in ("primal", "krylov"):
        posterior = fit_posterior(
            Design(Features(x), noise, precision), y, solver=solver, tol=1e-15
        )
        assert_allclose(posterior.misfit, exact, rtol=1e-5)


@pytest.mark.parametrize(
    ("n", "off_diagonal", "diagonal"), [(1, np.nan, np.nan), (2, np.nan, np.inf)]
)
def test_too_few_observations_for_a_variance(n, off_diagonal, diagonal):
    posterior = fit_posterior(Design(Features(X[:n]), make_noise(0.4, 2), 0.5), Y[:n])
    with pytest.warns(CaveatWarning, match=f"With {n} degrees of freedom"):
        assert posterior.noise_variance == np.inf
    with pytest.warns(CaveatWarning, match="no variance"):
        covariance = posterior.covariance()
    assert_allclose(np.diag(covariance), diagonal)
    assert_allclose(covariance[0, 1], off_diagonal)
    assert np.isfinite(posterior.weight_distribution().logpdf([0.0, 0.0]))


def test_a_prior_of_the_variance_gives_few_observations_moments():
    design = Design(Features(X[:1]), make_noise(0.4, 2), 0.5)
    posterior = fit_posterior(design, Y[:1], prior=VariancePrior(2.0, 3.0))
    assert posterior.shape == 2.5
    assert_allclose(posterior.rate, 3.0 + 0.5 * posterior.misfit)
    assert np.isfinite(posterior.covariance()).all()


@pytest.mark.parametrize("shape", [(30, 3), (20, 25)])
@pytest.mark.parametrize("intercept", [WITHOUT, UNDROPPED, DROP_TO_MEAN])
def test_samples_have_the_moments_of_the_posterior(shape, intercept):
    x, y = random_data(*shape)
    noise = make_noise(0.3, shape[1])
    posterior = fit_posterior(Design(Features(x), noise, 0.5, intercept), y)
    drawn = posterior.sample(20_000, np.random.default_rng(0))
    weights, level, variance = (torch.from_numpy(part) for part in drawn)
    assert_mean_is(variance, posterior.noise_variance)
    assert_mean_is(weights, torch.from_numpy(posterior.mean))
    spread = torch.from_numpy(np.diag(posterior.covariance()).copy())
    assert_variance_is(weights, spread)
    new = np.random.default_rng(7).normal(size=(2, shape[1]))
    location, leverage = posterior.predict(new, np.ones(shape[1]))
    responses = level[:, None] + weights @ torch.from_numpy(new.T.copy())
    assert_mean_is(responses, torch.from_numpy(location))
    assert_variance_is(responses, torch.from_numpy(leverage) * posterior.noise_variance)
    again = posterior.sample(3, np.random.default_rng(0))
    assert np.array_equal(
        again.weights, posterior.sample(3, np.random.default_rng(0))[0]
    )


@pytest.mark.parametrize("intercept", [WITHOUT, UNDROPPED, DROP_TO_MEAN])
def test_effective_draws_are_the_functions_of_the_same_weights(intercept):
    """Weights times r, and the intercept that goes with them."""
    x, y = random_data(30, 4)
    design = Design(Features(x), make_noise(0.3, 4), 0.5, intercept)
    posterior = fit_posterior(design, y)
    drawn, effective = (
        sample(20_000, np.random.default_rng(0))
        for sample in (posterior.sample, posterior.effective_sample)
    )
    assert_allclose(effective.weights, 0.7 * drawn.weights)
    assert_allclose(effective.variance, drawn.variance)
    functions = effective.weights @ x[0] + effective.intercept
    location, leverage = posterior.predict(x[:1], posterior.design.noise.mean)
    error = functions.std() / np.sqrt(len(functions))
    assert abs(functions.mean() - location[0]) < 5 * error
    spread = (functions - location[0]) / np.sqrt(effective.variance * leverage[0])
    assert abs(spread.var() - 1.0) < 5 * np.sqrt(2 / len(spread))
