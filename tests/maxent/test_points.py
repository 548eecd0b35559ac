"""Averages over masks without masks, against enumeration."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers

from caveat import maxent
from caveat.errors import ParameterError, UnsupportedModelError
from tests.maxent.cases import (
    CASES,
    COUNTS,
    LABELS,
    X,
    Y,
    density,
    logistic,
    tanh_net,
    weights,
)

pytestmark = pytest.mark.usefixtures("x64")

W = np.array([1.0, -0.5])


def value_and_gradient(model, masks, args):
    log_density = density(maxent.posterior(model, masks=masks), *args)
    return jax.jit(jax.value_and_grad(log_density))


def assert_same(model, args, w, *, masks, tolerance=1e-12):
    found = value_and_gradient(model, masks, args)(w)
    wanted = value_and_gradient(model, maxent.Enumerate(), args)(w)
    np.testing.assert_allclose(found[0], wanted[0], rtol=tolerance)
    np.testing.assert_allclose(found[1], wanted[1], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_closed_form_is_exact(name):
    case = CASES[name]
    found, wanted = (
        value_and_gradient(case.model, masks, case.args)
        for masks in (maxent.ClosedForm(), maxent.Enumerate())
    )
    for w in (W, np.array([-2.0, 3.0]), np.zeros(2)):
        np.testing.assert_allclose(found(w)[0], wanted(w)[0], rtol=1e-12)
        np.testing.assert_allclose(found(w)[1], wanted(w)[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "masks", [maxent.ClosedForm(), maxent.Enumerate(), maxent.Balanced()]
)
def test_a_single_number_is_one_unit(masks):
    def model(x, y):
        w = weights(2)
        slope = maxent.dropout("slope", w[0], 0.5)
        numpyro.sample("y", dist.Normal(x[:, 0] * slope + w[1], 0.5), obs=y)

    parts = [
        dist.Normal(X[:, 0] * kept * W[0] + W[1], 0.5).log_prob(Y).sum()
        for kept in (0.0, 1.0)
    ]
    found = density(maxent.posterior(model, masks=masks), X, Y)(W)
    prior = density(maxent.posterior(model, masks=masks), X[:0], Y[:0])(W)
    np.testing.assert_allclose(found - prior, sum(parts) / 2, rtol=1e-12)


def test_closed_form_inside_wrappers():
    def model(x, y, counts):
        whole = weights(2)
        w = maxent.dropout("w", whole, np.array([0.4, 0.0]))
        rows = maxent.dropout("rows", jnp.stack([whole, 1 - whole]), 0.3, units=0)
        with handlers.scale(scale=1.5), handlers.mask(mask=jnp.arange(4) < 3):
            numpyro.sample("counts", dist.Poisson(jnp.exp(x @ w)), obs=counts)
        normal = dist.Normal(x @ rows.T + w[0], jnp.array([0.5, 2.0])).to_event(2)
        numpyro.sample("y", normal, obs=jnp.stack([y, -y], axis=1))
        numpyro.sample("untouched", dist.Gamma(2.0, 1.0), obs=0.7)

    assert_same(model, (X, Y, COUNTS), W, masks=maxent.ClosedForm())


def test_quadrature_is_exact_for_a_gaussian():
    case = CASES["gaussian"]
    assert_same(case.model, case.args, W, masks=maxent.Quadrature())
    assert_same(case.model, case.args, W, masks=maxent.Quadrature(nodes=2))


def test_quadrature_error_falls_with_the_number_of_features():
    errors = [_error_per_datum(n_units) for n_units in (2, 5, 12)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[1] < 1e-2 and errors[2] < 2e-3


def _error_per_datum(n_units):
    generator = np.random.default_rng(0)
    x = generator.choice([-1.0, 1.0], size=(40, n_units))
    y = (generator.random(40) < 0.5).astype(int)
    w = np.full(n_units, 2.0 / np.sqrt(n_units))
    found = density(maxent.posterior(logistic, masks=maxent.Quadrature()), x, y, 0.3)
    exact = density(maxent.posterior(logistic), x, y, 0.3)
    return abs(found(w) - exact(w)) / len(x)


@pytest.mark.slow
def test_quadrature_has_converged():
    few, many = (
        value_and_gradient(logistic, maxent.Quadrature(nodes), (X, LABELS))(3 * W)
        for nodes in (32, 64)
    )
    np.testing.assert_allclose(few[0], many[0], rtol=1e-6)
    np.testing.assert_allclose(few[1], many[1], rtol=1e-4)


def test_other_generalised_linear_models():
    def model(x, y):
        w = maxent.dropout("w", weights(2), 0.4)
        eta = x @ w
        numpyro.sample("a", dist.Binomial(5, logits=eta), obs=y)
        numpyro.sample("b", dist.Exponential(2.0 / jnp.exp(eta)), obs=y + 0.5)

    found = value_and_gradient(model, maxent.Quadrature(), (X, COUNTS))(0.3 * W)
    exact = value_and_gradient(model, maxent.Enumerate(), (X, COUNTS))(0.3 * W)
    np.testing.assert_allclose(found[0], exact[0], rtol=1e-4)
    np.testing.assert_allclose(found[1], exact[1], rtol=2e-2)


@pytest.mark.parametrize(
    ("name", "y"), [("poisson", np.array([1, 2])), ("gaussian", np.array([0.1, 0.2]))]
)
def test_gradients_are_finite_where_nothing_is_random(name, y):
    x = np.array([[0.0, 0.0], [1.0, 2.0]])
    found = value_and_gradient(CASES[name].model, maxent.ClosedForm(), (x, y))
    assert np.isfinite(found(np.zeros(2))[1]).all()
    assert np.isfinite(found(W)[1]).all()


# What does not apply is refused, with the reason


@pytest.mark.parametrize(
    ("likelihood", "parameter"),
    [
        (lambda eta: dist.Bernoulli(probs=eta), "probs=η"),
        (lambda eta: dist.Bernoulli(probs=jnp.exp(eta)), r"probs=exp\(η\)"),
        (lambda eta: dist.Poisson(1.0 + eta), "rate=η"),
        (lambda eta: dist.Normal(0.0, 2.0 + eta), "scale=η"),
    ],
)
def test_quadrature_refuses_parameters_that_a_normal_would_leave(likelihood, parameter):
    """Bernoulli gave a wrong number, as NumPyro clips; the others NaN."""

    def model(x, y):
        w = maxent.dropout("w", weights(2), 0.4)
        numpyro.sample("y", likelihood(x @ w), obs=y)

    quadrature = density(maxent.posterior(model, masks=maxent.Quadrature()), X, LABELS)
    with pytest.raises(UnsupportedModelError, match=parameter):
        quadrature(W)


def test_what_has_no_closed_form_says_so():
    for masks, model, args, match in [
        (maxent.ClosedForm(), logistic, (X, LABELS), "'y' is BernoulliLogits"),
        (maxent.ClosedForm(), _gaussian_scale, (X, Y), "'y' is Normal"),
        (maxent.ClosedForm(), _identity_link, (X, COUNTS), "'y' is Poisson"),
        (maxent.ClosedForm(), tanh_net, (X, Y), "through 'tanh'"),
        (maxent.Quadrature(), tanh_net, (X, Y), "through 'tanh'"),
        (maxent.Quadrature(), _probabilities, (X, LABELS), "through 'logistic'"),
        (maxent.Quadrature(), _two_parameters, (X, Y), "one number per element"),
        (maxent.Quadrature(), _classes, (X, LABELS), "one number per element"),
    ]:
        w = np.ones(3 if model is tanh_net else 2)
        with pytest.raises(UnsupportedModelError, match=match):
            density(maxent.posterior(model, masks=masks), *args)(w)
    with pytest.raises(ParameterError, match="nodes must be at least 1"):
        maxent.Quadrature(nodes=0)


def _eta(x):
    return x @ maxent.dropout("w", weights(2), 0.4)


def _gaussian_scale(x, y):
    numpyro.sample("y", dist.Normal(0.0, jnp.exp(_eta(x))), obs=y)


def _identity_link(x, y):
    numpyro.sample("y", dist.Poisson(9.0 + _eta(x)), obs=y)


def _probabilities(x, y):
    numpyro.sample("y", dist.Bernoulli(probs=jax.nn.sigmoid(_eta(x))), obs=y)


def _two_parameters(x, y):
    eta = _eta(x)
    numpyro.sample("y", dist.Normal(eta, jnp.exp(eta)), obs=y)


def _classes(x, y):
    eta = _eta(x)
    logits = jnp.stack([eta, -eta, 0.5 * eta], -1)
    numpyro.sample("y", dist.Categorical(logits=logits), obs=y)


def hessian(model, masks, args):
    log_density = density(maxent.posterior(model, masks=masks), *args)
    return jax.jit(jax.hessian(log_density))


@pytest.mark.parametrize(
    ("name", "masks"),
    [
        ("gaussian", maxent.ClosedForm()),
        ("poisson", maxent.ClosedForm()),
        ("gaussian", maxent.Quadrature()),
        ("poisson", maxent.Quadrature()),
        ("logistic", maxent.Quadrature()),
    ],
)
def test_second_derivatives_are_right_at_weights_of_zero_and_next_to_it(name, masks):
    model = {"logistic": logistic}.get(name) or CASES[name].model
    args = (X, LABELS) if name == "logistic" else CASES[name].args
    found = hessian(model, masks, args)
    exact = hessian(model, maxent.Enumerate(), args)
    # At 0 they hang on two moments of the masks only, which all strategies have right.
    for scale in (0.0, 1e-200, 1e-120, 1e-14, 1e-9, 1e-6):
        got, wanted = found(scale * W), exact(scale * W)
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-8)


def test_a_narrow_likelihood_is_not_taken_for_a_smooth_one():
    """Its width, not 1, is what the spread of the linear predictor is small beside."""

    def model(x, y):
        w = maxent.dropout("w", weights(2), 0.4)
        numpyro.sample("y", dist.StudentT(3.0, x @ w, 1e-5), obs=y)

    near = 1e-5 * W
    y = X @ near
    found = value_and_gradient(model, maxent.Quadrature(64), (X, y))(near)
    assert_far = value_and_gradient(model, maxent.Quadrature(63), (X, y))(near)
    np.testing.assert_allclose(found[0], assert_far[0], rtol=1e-3)
    at_mean = density(model, X, y)(0.6 * near)
    assert abs(found[0] - at_mean) > 0.1


def test_a_kinked_likelihood_is_averaged_over_its_kink():
    def model(x, y):
        w = maxent.dropout("w", weights(2), 0.4)
        numpyro.sample("y", dist.Laplace(x @ w, 1.0), obs=y)

    y = 0.6 * X @ W  # the kink is at the mean of the linear predictor
    found = density(maxent.posterior(model, masks=maxent.Quadrature()), X, y)(W)
    spread = np.sqrt(0.24 * np.square(X * W).sum(1) * 2 / np.pi).sum()
    at_mean = density(model, X, y)(0.6 * W)
    prior = dist.Normal(0.0, 2.0).log_prob
    wanted = at_mean - spread + prior(W).sum() - prior(0.6 * W).sum()
    np.testing.assert_allclose(found, wanted, rtol=2e-2)
