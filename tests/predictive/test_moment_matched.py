"""Moments as a predictive: the Gaussian they stand for, and what they cannot know."""

import math

import pytest
import torch
from torch import nn
from torch.distributions import MultivariateNormal, Normal
from torch.testing import assert_close

from caveat import MCDropout
from caveat.errors import DrawsNotKeptError, ParameterError, ShapeError
from caveat.evaluation import evaluate
from caveat.predictive import (
    GaussianPredictive,
    MomentPredictive,
    mean_field_softmax,
)
from tests.predictive.examples import random_draws
from tests.sampling.closed_form.nets import assert_same, numbers, seeded


def two_sites(outputs: int = 3) -> nn.Sequential:
    return seeded(
        lambda: nn.Sequential(
            nn.Dropout(0.2),
            nn.Linear(2, 8),
            nn.ReLU(),
            nn.Dropout(0.4),
            nn.Linear(8, outputs),
        )
    )


X = numbers(5, 2)


def test_it_says_what_it_is():
    found = MCDropout(two_sites()).moments(X)
    assert not found.exact
    assert found.method == "propagated"
    assert found.n_draws == 0
    line = repr(found).splitlines()[0]
    assert line == (
        "MomentPredictive: 5 rows of outputs (3,), propagated (approximate) as a "
        "Gaussian, without observation noise"
    )
    exact = MCDropout(two_sites()[3:]).moments(numbers(5, 8), precision=4.0)
    assert exact.exact
    assert repr(exact).splitlines()[0].endswith("(3,), exact moments as a Gaussian")


def test_observation_noise():
    found = MCDropout(two_sites()).moments(X)
    noisy = found.with_precision(4.0)
    assert not found.noise_variance.any()
    assert_same(noisy.mean, found.mean)
    assert_same(noisy.variance, found.variance + 0.25)
    noise = 0.25 * torch.eye(3).double()
    assert_same(noisy.covariance, found.covariance + noise)
    straight = MCDropout(two_sites()).moments(X, precision=4.0)
    assert_same(straight.covariance, noisy.covariance)
    parts = MCDropout(two_sites()).moments(X, precision=4.0, batch_size=2)
    assert_same(parts.covariance, noisy.covariance)


def test_density_is_that_of_a_joint_gaussian():
    found = MCDropout(two_sites()).moments(X, precision=4.0)
    y = found.mean + random_draws(5, 3)
    law = MultivariateNormal(found.mean, found.covariance)
    assert_close(found.log_prob(y), law.log_prob(y))
    alone = MomentPredictive.of(
        found.mean, found.epistemic_variance, method="propagated", precision=4.0
    )
    law = Normal(found.mean, found.std)
    assert_close(alone.log_prob(y), law.log_prob(y).sum(-1))
    assert_close(alone.cdf(y), law.cdf(y))
    assert_close(alone.quantile(0.3), law.icdf(torch.tensor(0.3).double()))


def test_evaluate_by_closed_forms():
    """RMSE, density, CRPS and coverage of known Gaussians (Gneiting, Raftery 2007)."""
    mean, variance = random_draws(200, 1), random_draws(200, 1, seed=1).exp()
    y = mean + (variance + 0.5).sqrt() * random_draws(200, 1, seed=2)
    moments = MomentPredictive.of(mean, variance, method="exact", precision=2.0)
    found = evaluate(moments, y)
    std = (variance + 0.5).sqrt()
    z = (y - mean) / std
    assert found["RMSE"].value == pytest.approx(
        float((y - mean).square().mean()) ** 0.5
    )
    log_prob = Normal(mean, std).log_prob(y).mean()
    assert found["log-likelihood"].value == pytest.approx(float(log_prob))
    bell = (-0.5 * z.square()).exp() / math.sqrt(2 * math.pi)
    crps = z * (2 * torch.special.ndtr(z) - 1) + 2 * bell - 1 / math.sqrt(math.pi)
    assert found["CRPS"].value == pytest.approx(float((std * crps).mean()))
    inside = (z.abs() <= 1.6448536269514722).double().mean()
    assert found["coverage of 90% intervals"].value == pytest.approx(float(inside))
    width = 2 * 1.6448536269514722 * std.mean()
    assert found["width of 90% intervals"].value == pytest.approx(float(width))
    assert not found.notes


def test_evaluate_moments_of_a_network():
    """With exact moments and a Gaussian output, draws tend to the same report.

    The standard deviation of 1000 draws is right to 1/sqrt(2000), 2.2 %.
    """
    model = seeded(lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(400, 1)))
    x, mc = 0.1 * numbers(30, 400), MCDropout(model.double(), seed=0)
    moments = mc.moments(x, precision=1.0)
    y = moments.mean + moments.std * random_draws(30, 1)
    drawn = evaluate(mc.regress(x, precision=1.0, n_draws=1000), y)
    found = evaluate(moments, y)
    assert moments.exact
    for name in ("log-likelihood", "CRPS", "width of 90% intervals"):
        assert found[name].value == pytest.approx(drawn[name].value, rel=0.022)


def test_without_noise_the_report_says_so():
    mean = random_draws(20, 1)
    moments = MomentPredictive.of(mean, torch.ones_like(mean), method="exact")
    assert "no observation noise" in evaluate(moments, mean).notes[-1]


def test_rows_without_variance_have_no_density():
    mean, none = random_draws(3, 1), torch.zeros(3, 1).double()
    found = MomentPredictive.of(mean, none, method="exact")
    with pytest.raises(ParameterError, match="with_precision"):
        found.log_prob(mean)
    assert_close(found.interval(0.9)[0], mean)
    assert_close(found.cdf(mean + 1), torch.ones(3, 1).double())
    assert_close(found.cdf(mean - 1), torch.zeros(3, 1).double())
    assert_close(found.crps(mean - 2), torch.full((3, 1), 2.0).double())
    assert_close(found.crps(mean), none)
    assert_close(found.sample(2, seed=0), torch.stack([mean, mean]))


def test_outputs_that_follow_from_others_have_no_joint_density():
    """Two outputs that are one number: nearly, and exactly."""
    mean = torch.zeros(1, 2).double()
    for gap in (0.0, 1e-12):
        joint = torch.tensor([[[1.0, 1.0], [1.0, 1.0 + gap]]]).double()
        found = MomentPredictive.of(
            mean, joint.diagonal(dim1=1, dim2=2), method="exact", covariance=joint
        )
        with pytest.raises(ParameterError, match="follows from"):
            found.log_prob(mean)
        drawn = found.sample(100, seed=0)
        assert_close(drawn[..., 0], drawn[..., 1], atol=1e-5, rtol=0)
        assert bool(found.with_precision(1.0).log_prob(mean).isfinite().all())


def test_one_gaussian_is_a_point_predictive():
    mean = random_draws(4, 2)
    moments = MomentPredictive.of(
        mean, torch.zeros_like(mean), method="exact", precision=3.0
    )
    point = GaussianPredictive.point(mean, precision=3.0)
    y = mean + random_draws(4, 2, seed=1)
    assert_close(moments.log_prob(y), point.log_prob(y))
    assert_close(moments.cdf(y), point.cdf(y))
    assert_close(moments.crps(y), point.crps(y))
    assert_close(moments.quantile([0.1, 0.8]), point.quantile([0.1, 0.8]))


def test_class_probabilities():
    found = MCDropout(two_sites()).moments(X)
    assert_same(found.class_probs, mean_field_softmax(found.mean, found.covariance))
    assert_same(found.class_probs.sum(1), torch.ones(5).double())
    many = MCDropout(two_sites(70)).moments(X)
    assert_same(many.class_probs, mean_field_softmax(many.mean, many.variance))


def test_classification_is_that_of_gaussian_logits():
    """Two classes: the mean and the entropies of a logistic of one Gaussian."""
    found = MCDropout(two_sites(2)).moments(X, precision=1.0)
    classes = found.classification(20_000, seed=1)
    variance = found.with_precision(1.0).covariance - torch.eye(2).double()
    apart = variance[:, 0, 0] + variance[:, 1, 1] - 2 * variance[:, 0, 1]
    nodes = torch.special.ndtri((torch.arange(20_000).double() + 0.5) / 20_000)
    gap = (found.mean[:, 0] - found.mean[:, 1])[:, None] + apart.sqrt()[:, None] * nodes
    first = gap.sigmoid()
    z = (classes.probs[:, 0] - first.mean(1)) / classes.mean_error[:, 0]
    assert z.abs().max() < 5
    entropies = torch.special.entr(first) + torch.special.entr(1 - first)
    error = entropies.std(1) / math.sqrt(20_000)
    gaps = (classes.expected_entropy - entropies.mean(1)).abs()
    assert bool((gaps < 5 * error).all())
    with pytest.raises(DrawsNotKeptError):
        classes.draws  # noqa: B018
    assert torch.equal(found.classification(50).probs, found.classification(50).probs)


def test_close_to_sampled_class_probabilities():
    model = two_sites()
    found = MCDropout(model).moments(X).class_probs
    sampled = MCDropout(model, seed=0).classify(X, n_draws=2000).probs
    assert (found - sampled).abs().max() < 0.1


def test_sequences_of_logits():
    model = seeded(lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 3)))
    found = MCDropout(model).moments(numbers(4, 6, 2))
    assert found.exact
    probs = found.class_probs_along(-1)
    assert probs.shape == (4, 6, 3)
    assert_same(probs.sum(-1), torch.ones(4, 6).double())


def test_classes_of_images_are_not_taken_for_their_width():
    model = seeded(lambda: nn.Sequential(nn.Dropout(0.5), nn.Conv2d(2, 3, 1)))
    found = MCDropout(model).moments(numbers(4, 2, 5, 6))
    for ask in (lambda: found.class_probs, found.classification):
        with pytest.raises(ShapeError, match="class_dim=1 for images"):
            ask()
    probs = found.class_probs_along(1)
    assert probs.shape == (4, 5, 6, 3)
    sampled = found.classification(4000, class_dim=1)
    assert sampled.probs.shape == probs.shape
    assert (probs - sampled.probs).abs().max() < 0.1


def test_no_classes():
    with pytest.raises(ShapeError, match="two or more classes"):
        MCDropout(two_sites(1)).moments(X).class_probs  # noqa: B018


def test_no_covariance():
    with pytest.raises(ShapeError, match="is not known"):
        MCDropout(two_sites(65)).moments(X).covariance  # noqa: B018
    last = nn.Sequential(*two_sites(), nn.Tanh())
    with pytest.raises(ShapeError, match="is not known"):
        MCDropout(last).moments(X).covariance  # noqa: B018


def test_wrong_moments():
    with pytest.raises(ShapeError, match="variance must have the shape"):
        MomentPredictive.of(torch.zeros(3, 1), torch.ones(3), method="exact")
    with pytest.raises(ParameterError, match="0 or above"):
        MomentPredictive.of(torch.zeros(3), -torch.ones(3), method="exact")
