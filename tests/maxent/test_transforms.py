"""The posterior of eq. 10 and its naive rival, against sums over all masks."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoDelta
from numpyro.infer.reparam import LocScaleReparam
from scipy.optimize import minimize

from caveat import maxent
from caveat.errors import (
    InputTypeError,
    NoStochasticSiteError,
    ParameterError,
    ShapeError,
    UnsupportedModelError,
)
from tests.maxent.cases import (
    CASES,
    LABELS,
    PRIOR_SD,
    X,
    Y,
    density,
    direct,
    expected,
    gaussian,
    log_prior,
    logistic,
    mixed,
    moments_on_grid,
    weights,
)

pytestmark = pytest.mark.usefixtures("x64")

W = np.array([1.0, -0.5])
POINTS = [np.array([1.0, -0.5, 0.7]), np.array([-2.0, 0.3, 1.1]), np.full(3, 1e-3)]


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


# Against enumeration


def test_log_density_gradient_and_map_are_those_of_the_sum_over_masks(case):
    found, wanted = (
        jax.jit(jax.value_and_grad(log_density))
        for log_density in (_posterior(case), direct(case))
    )
    for point in POINTS:
        w = jnp.array(point[: case.n_parameters])
        np.testing.assert_allclose(found(w)[0], wanted(w)[0], rtol=1e-13)
        np.testing.assert_allclose(found(w)[1], wanted(w)[1], rtol=1e-12, atol=1e-13)
    modes = [_mode(log_density, case.n_parameters) for log_density in (found, wanted)]
    np.testing.assert_allclose(*modes, atol=1e-7)


def _mode(log_density, n_parameters):
    found = minimize(
        lambda w: [-np.array(part) for part in log_density(w)],
        np.full(n_parameters, 0.3),
        jac=True,
        tol=1e-10,
    )
    return found.x


@pytest.mark.slow
def test_map_by_a_guide():
    model = maxent.posterior(logistic)
    svi = SVI(model, AutoDelta(model), numpyro.optim.Minimize(), Trace_ELBO())
    state, _ = svi.update(svi.init(jax.random.PRNGKey(0), X, LABELS), X, LABELS)
    gradient = jax.grad(direct(CASES["logistic"]))(svi.get_params(state)["w_auto_loc"])
    np.testing.assert_allclose(gradient, 0.0, atol=1e-5)


def _posterior(case):
    return density(maxent.posterior(case.model), *case.args)


# Reference values: theory, "Maximum-entropy logistic"


@pytest.mark.parametrize(
    ("model", "value"),
    [
        (maxent.posterior(lambda x, y: logistic(x, y, 0.0)), -1.712098195256),
        (maxent.posterior(logistic), -2.123766222061),
        (maxent.naive(logistic), -2.073170461472),
    ],
    ids=["bayes", "posterior", "naive"],
)
def test_reference_likelihoods(model, value):
    found = density(model, X, LABELS)(jnp.array(W)) - log_prior(W)
    assert float(found) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("model", "log_z", "mean", "sd"),
    [
        (
            logistic,
            -2.515972671605,
            (2.284703937, -0.275280429),
            (1.481266018, 1.165172909),
        ),
        (
            maxent.posterior(logistic),
            -2.939585323732,
            (1.712491131, -0.324533215),
            (1.573378123, 1.303848505),
        ),
        (
            maxent.naive(logistic),
            -2.654695191313,
            (1.671165866, -0.271288160),
            (1.679402875, 1.678444225),
        ),
    ],
    ids=["bayes", "posterior", "naive"],
)
def test_reference_posteriors(model, log_z, mean, sd):
    found = moments_on_grid(density(model, X, LABELS), 2, reach=16.0, points=321)
    assert float(found[0]) == pytest.approx(log_z, abs=1e-9)
    np.testing.assert_allclose(found[1], mean, atol=2e-9)
    np.testing.assert_allclose(jnp.sqrt(jnp.diag(found[2])), sd, atol=2e-9)


# Limits


def test_the_posterior_has_the_least_divergence_under_the_constraints():
    """Eqs 5 to 10 on a grid: S of eq. 1 as printed is a divergence, which is least."""
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(*[np.linspace(-3, 3, 9)] * 2), -1).reshape(-1, 2)
    prior = rng.dirichlet(np.ones(len(grid)))
    masks = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    chances = np.array([0.16, 0.24, 0.24, 0.36])
    signs = np.where(np.asarray(LABELS) == 1, 1.0, -1.0)
    eta = np.einsum("id,md,gd->gmi", np.asarray(X), masks, grid)
    logs = -np.logaddexp(0.0, -signs * eta).sum(-1)  # log q(x' | m o theta)

    def divergence(p):
        """KL of p(theta) pi(m) at x' from the joint prior q(x', m, theta)."""
        joint = p[:, None] * chances
        ratio = np.log(joint) - np.log(prior[:, None] * chances) - logs
        return (joint * ratio).sum()

    log_density = density(maxent.posterior(logistic), X, LABELS)
    own = np.array([log_density(w) - log_prior(w) for w in grid])
    np.testing.assert_allclose(own, logs @ chances, rtol=1e-10)
    weights = prior * np.exp(own)
    best = weights / weights.sum()
    assert divergence(best) == pytest.approx(-np.log(weights.sum()), rel=1e-10)
    for size in (1.0, 1e-2, 1e-4):
        other = best * np.exp(size * rng.normal(size=len(best)))
        assert divergence(other / other.sum()) > divergence(best)


def test_rate_zero_is_exactly_bayes():
    bayes = density(lambda x, y: logistic(x, y, 0.0), X, LABELS)
    every = [
        maxent.Enumerate(),
        maxent.ClosedForm(),
        maxent.Quadrature(),
        maxent.Balanced(),
        maxent.Fixed(3),
        maxent.Fresh(3),
    ]
    for masks in every:
        model = maxent.posterior(logistic, masks=masks)
        assert density(model, X, LABELS, 0.0)(W) == bayes(W)
    naive = density(maxent.naive(logistic), X, LABELS, 0.0)
    np.testing.assert_allclose(naive(W), bayes(W), rtol=1e-14)


def test_at_rate_one_the_prior_stays():
    model = maxent.posterior(logistic)
    found = density(model, X, LABELS, 1.0)(W) - log_prior(W)
    assert float(found) == pytest.approx(len(X) * np.log(0.5), abs=1e-13)


def test_units_of_rate_zero_and_one_are_not_enumerated():
    rates = np.array([0.0, 1.0, 0.4] + [0.0] * 30)
    x = np.random.default_rng(0).normal(size=(4, 33))
    w = np.random.default_rng(1).normal(size=33)
    found = density(maxent.posterior(logistic), x, LABELS, rates)(w) - log_prior(w)
    kept = np.where(rates == 1.0, 0.0, w)
    eta = [x @ kept, x @ (kept * (np.arange(33) != 2))]
    terms = [(LABELS * e - np.logaddexp(0.0, e)).sum() for e in eta]
    assert float(found) == pytest.approx(0.6 * terms[0] + 0.4 * terms[1], rel=1e-13)


def test_the_average_of_logs_is_below_the_log_of_averages(case):
    def both(w):
        naive = density(maxent.naive(case.model), *case.args)(w) - log_prior(w)
        return naive, mixed(case, w), expected(case, w)

    for point in POINTS[:2]:
        naive, mixture, average = jax.jit(both)(jnp.array(point[: case.n_parameters]))
        np.testing.assert_allclose(naive, mixture, rtol=1e-13)
        assert average < mixture


def test_masks_shared_or_for_every_datum_give_the_same_posterior():
    def on_weights(x, y):
        w = maxent.dropout("w", weights(2), 0.4)
        numpyro.sample("y", dist.Normal(x @ w + 0.2, 0.5), obs=y)

    shared = density(maxent.posterior(on_weights), X, Y)(W)
    own = density(maxent.posterior(gaussian), X, Y)(W)
    np.testing.assert_allclose(shared, own, rtol=1e-14)


# All kinds of models


def test_constrained_latents_several_sites_and_parameters():
    def model(x, y, labels):
        w = maxent.dropout("w", weights(2), 0.4)
        scale = numpyro.sample("scale", dist.HalfNormal(1.0))
        shift = numpyro.param("shift", 0.3)
        eta = numpyro.deterministic("eta", x @ w + shift)
        numpyro.sample("y", dist.Normal(eta, scale).to_event(1), obs=y)
        numpyro.sample("labels", dist.Bernoulli(logits=eta), obs=labels)

    def by_hand(w, scale):
        total = dist.Normal(0.0, PRIOR_SD).log_prob(w).sum()
        total += dist.HalfNormal(1.0).log_prob(scale)
        for bits in np.ndindex(2, 2):
            eta = X @ (np.array(bits) * w) + 0.3
            value = dist.Normal(eta, scale).log_prob(Y).sum()
            value += dist.Bernoulli(logits=eta).log_prob(LABELS).sum()
            total += np.prod(np.where(bits, 0.6, 0.4)) * value
        return total

    values = {"w": W, "scale": 0.7}
    model = maxent.posterior(model)
    found, trace = numpyro.infer.util.log_density(model, (X, Y, LABELS), {}, values)
    np.testing.assert_allclose(found, by_hand(W, 0.7), rtol=1e-13)
    np.testing.assert_allclose(trace["eta"]["value"], X @ W + 0.3)
    assert set(trace) == {"w", "scale", "shift", "eta", "expected_log_likelihood"}


def test_scale_mask_and_result():
    def model(x, y):
        w = maxent.dropout("w", weights(2), 0.4)
        with handlers.scale(scale=3.0), handlers.mask(mask=jnp.arange(4) < 2):
            numpyro.sample("y", dist.Normal(x @ w + 0.2, 0.5), obs=y)
        return "done"

    found = density(maxent.posterior(model), X, Y)(W) - log_prior(W)
    half = CASES["gaussian"].log_likelihoods
    wanted = sum(
        p * half(W, np.array(bits))[:2].sum()
        for bits, p in [((0, 0), 0.16), ((0, 1), 0.24), ((1, 0), 0.24), ((1, 1), 0.36)]
    )
    np.testing.assert_allclose(found, 3.0 * wanted, rtol=1e-13)
    with handlers.seed(rng_seed=0):
        assert maxent.posterior(model)(X, Y) == "done"


@pytest.mark.parametrize("masks", [maxent.Enumerate(), maxent.ClosedForm()], ids=str)
def test_subsampling_is_unbiased(masks):
    def model(x, y):
        w = maxent.dropout("w", weights(2), 0.4)
        with numpyro.plate("data", len(x), subsample_size=2) as rows:
            numpyro.sample("y", dist.Normal(x[rows] @ w + 0.2, 0.5), obs=y[rows])

    x, y = jnp.array(X), jnp.array(Y)
    whole = density(maxent.posterior(gaussian), X, Y)(W)
    log_density = density(maxent.posterior(model, masks=masks), x, y)
    parts = []
    for pair in [(0, 1), (2, 3)]:
        fixed = handlers.substitute(
            maxent.posterior(model, masks=masks), data={"data": jnp.array(pair)}
        )
        parts.append(density(fixed, x, y)(W))
    np.testing.assert_allclose(np.mean(parts), whole, rtol=1e-13)
    with handlers.seed(rng_seed=0):
        assert np.isfinite(log_density(W))


def test_a_latent_drop_rate_has_its_gradient():
    def model(x, y):
        w = maxent.dropout("w", jnp.array(W), numpyro.sample("f", dist.Beta(1.0, 1.0)))
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)

    def log_density(f):
        return numpyro.infer.util.log_density(
            maxent.posterior(model), (X, LABELS), {}, {"f": f}
        )[0]

    def by_hand(f):
        p = [f * f, f * (1 - f), f * (1 - f), (1 - f) ** 2]
        bits = [(0, 0), (0, 1), (1, 0), (1, 1)]
        likelihood = CASES["logistic"].log_likelihoods
        return sum(
            q * likelihood(W, np.array(b)).sum() for q, b in zip(p, bits, strict=True)
        )

    found, wanted = (
        jax.jit(jax.value_and_grad(g))(0.4) for g in (log_density, by_hand)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_random_keys_of_the_model_are_the_same_under_all_masks():
    def model(y):
        w = maxent.dropout("w", weights(1), 0.5)
        noise = jax.random.normal(numpyro.prng_key())
        numpyro.deterministic("noise", noise)
        numpyro.sample("y", dist.Normal(w[0] + noise, 1.0), obs=y)

    def both():
        with handlers.seed(rng_seed=1), handlers.trace() as trace:
            maxent.posterior(model)(0.5)
        w, noise = trace["w"]["value"][0], trace["noise"]["value"]
        normal = dist.Normal(noise, 1.0)
        wanted = (normal.log_prob(0.5) + normal.log_prob(0.5 - w)) / 2
        return trace["expected_log_likelihood"]["fn"].log_factor, wanted

    np.testing.assert_allclose(*jax.jit(both)(), rtol=1e-12)


@pytest.mark.parametrize("inside", [False, True])
def test_recurrent_models_share_a_mask_over_time(inside):
    def model(y):
        w = weights(2)
        outer = w if inside else maxent.dropout("w", w, 0.4)

        def step(state, observed):
            v = maxent.dropout("w", w, 0.4) if inside else outer
            state = jnp.tanh(state * v[0] + v[1])
            numpyro.sample("y", dist.Normal(state, 1.0), obs=observed)
            return state, None

        scan(step, 0.0, y)

    total = 0.0
    for bits in np.ndindex(2, 2):
        state, v = 0.0, np.array(bits) * W
        for observed in Y:
            state = np.tanh(state * v[0] + v[1])
            value = -0.5 * (observed - state) ** 2 - 0.5 * np.log(2 * np.pi)
            total += np.prod(np.where(bits, 0.6, 0.4)) * value
    seeded = handlers.seed(maxent.posterior(model), 0)
    found = density(seeded, jnp.array(Y))(W) - log_prior(W)
    np.testing.assert_allclose(found, total, rtol=1e-12)


def test_reparametrised_inside_or_outside_the_transform():
    def model(x, y):
        w = numpyro.sample("w", dist.Normal(jnp.zeros(2), PRIOR_SD))
        w = maxent.dropout("w", w, 0.4)
        numpyro.sample("y", dist.Normal(x @ w + 0.2, 0.5), obs=y)

    config = {"w": LocScaleReparam(0.0)}
    outside = handlers.reparam(maxent.posterior(model), config)
    inside = maxent.posterior(handlers.reparam(model, config))
    wanted = expected(CASES["gaussian"], W) + dist.Normal().log_prob(W / PRIOR_SD).sum()
    for transformed in (outside, inside):
        found = jax.jit(
            lambda w, model=transformed: numpyro.infer.util.log_density(
                model, (X, Y), {}, {"w_decentered": w}
            )[0]
        )(W / PRIOR_SD)
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_latent_sites_must_not_depend_on_masks():
    def model(y):
        w = maxent.dropout("w", weights(2), 0.4)
        if isinstance(w, jax.core.Tracer):  # only under masks, when not traced
            numpyro.sample("surprise", dist.Normal())
        numpyro.sample("y", dist.Normal(w[0], 1.0), obs=y)

    with (
        pytest.raises(UnsupportedModelError, match="'surprise' appears only"),
        handlers.seed(rng_seed=0),
    ):
        maxent.posterior(model)(0.3)


def test_the_model_is_left_as_it_was():
    before = density(logistic, X, LABELS)(W)
    density(maxent.posterior(logistic), X, LABELS)(W)
    assert density(logistic, X, LABELS)(W) == before
    assert maxent.posterior(logistic).__name__ == "logistic"


# Naive dropout with several sites


def test_naive_gives_each_member_of_a_plate_one_mask():
    def model(x, y, labels):
        w = maxent.dropout("w", weights(2), 0.4)
        with numpyro.plate("data", len(x)):
            numpyro.sample("y", dist.Normal(x @ w, 0.5), obs=y)
            numpyro.sample("labels", dist.Bernoulli(logits=x @ w), obs=labels)

    found = density(maxent.naive(model, data="data"), X, Y, LABELS)(W) - log_prior(W)
    total = 0.0
    for bits in np.ndindex(2, 2):
        eta = X @ (np.array(bits) * W)
        each = dist.Normal(eta, 0.5).log_prob(Y)
        each = each + dist.Bernoulli(logits=eta).log_prob(LABELS)
        total = total + np.prod(np.where(bits, 0.6, 0.4)) * np.exp(each)
    np.testing.assert_allclose(found, np.log(total).sum(), rtol=1e-13)
    with pytest.raises(ShapeError, match="what one datum is"):
        density(maxent.naive(model), X, Y, LABELS)(W)
    with pytest.raises(ParameterError, match="Got 'rows'"):
        density(maxent.naive(model, data="rows"), X, Y, LABELS)(W)


def test_naive_scales_after_the_mixture():
    def model(x, y):
        with handlers.scale(scale=2.5):
            logistic_sites(x, y)

    def logistic_sites(x, y):
        w = maxent.dropout("w", jnp.array(W), 0.4)
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)

    found = numpyro.infer.util.log_density(maxent.naive(model), (X, LABELS), {}, {})[0]
    assert float(found) == pytest.approx(2.5 * -2.073170461472, abs=1e-11)


# What cannot be right is refused


def test_what_goes_wrong_says_so():
    def twice(x, y):
        w = maxent.dropout("w", maxent.dropout("w", weights(2), 0.4), 0.4)
        numpyro.sample("y", dist.Normal(x @ w, 1.0), obs=y)

    def discrete(x, y):
        k = numpyro.sample("k", dist.Bernoulli(0.5))
        w = maxent.dropout("w", weights(2), 0.4)
        numpyro.sample("y", dist.Normal(x @ w + k, 1.0), obs=y)

    unmarked = maxent.posterior(lambda: numpyro.sample("a", dist.Normal(), obs=0.0))
    late = handlers.condition(maxent.posterior(_two_outcomes), {"labels": LABELS})
    for model, args, error, match in [
        (unmarked, (), NoStochasticSiteError, "marks nothing"),
        (maxent.posterior(logistic), (X,), NoStochasticSiteError, "observes nothing"),
        (maxent.posterior(twice), (X, Y), ParameterError, "'w' twice"),
        (maxent.posterior(discrete), (X, Y), UnsupportedModelError, "'k' is discrete"),
        (late, (X, Y), UnsupportedModelError, "'labels' was conditioned outside"),
    ]:
        with pytest.raises(error, match=match), handlers.seed(rng_seed=0):
            model(*args)


def _two_outcomes(x, y, labels=None):
    w = maxent.dropout("w", weights(2), 0.4)
    numpyro.sample("y", dist.Normal(x @ w, 1.0), obs=y)
    numpyro.sample("labels", dist.Bernoulli(logits=x @ w), obs=labels)


def test_strategies_are_objects():
    with pytest.raises(InputTypeError, match="Got 'enumerate'"):
        maxent.posterior(logistic, masks="enumerate")
    with pytest.raises(InputTypeError, match=r"Balanced\(\) or Fixed"):
        maxent.naive(logistic, masks=maxent.ClosedForm())
    with pytest.raises(ParameterError, match="masks that are fixed"):
        maxent.naive(logistic, masks=maxent.Fresh())
