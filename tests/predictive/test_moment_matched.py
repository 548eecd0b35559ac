"""What MCDropout.moments returns."""

import pytest
import torch
from torch import nn

from caveat import MCDropout
from caveat.errors import DrawsNotKeptError, ShapeError
from caveat.sampling import PredictiveMoments
from caveat.sampling.closed_form import mean_field_softmax
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
    assert "5 rows of outputs (3,), propagated (approximate)" in repr(found)
    exact = MCDropout(two_sites()[3:]).moments(numbers(5, 8))
    assert exact.exact
    assert "outputs (3,), exact" in repr(exact)


def test_regression():
    found = MCDropout(two_sites()).moments(X)
    predictive = found.regression(precision=4.0)
    assert_same(predictive.mean, found.mean)
    assert_same(predictive.variance, found.variance + 0.25)
    noise = 0.25 * torch.eye(3).double()
    assert_same(predictive.covariance, found.covariance + noise)
    assert not predictive.mean_error.any()
    assert "no draws, propagated moments" in repr(predictive)
    for ask in (
        lambda: predictive.log_prob(found.mean),
        lambda: predictive.quantile(0.5),
    ):
        with pytest.raises(DrawsNotKeptError):
            ask()


def test_class_probabilities():
    found = MCDropout(two_sites()).moments(X)
    assert_same(found.class_probs, mean_field_softmax(found.mean, found.covariance))
    assert_same(found.class_probs.sum(1), torch.ones(5).double())
    many = MCDropout(two_sites(70)).moments(X)
    assert_same(many.class_probs, mean_field_softmax(many.mean, many.variance))


def test_close_to_sampled_class_probabilities():
    model = two_sites()
    found = MCDropout(model).moments(X).class_probs
    sampled = MCDropout(model, seed=0).classify(X, n_draws=2000).probs
    assert (found - sampled).abs().max() < 0.1


def test_sequences_of_logits():
    model = seeded(lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 3)))
    found = MCDropout(model).moments(numbers(4, 6, 2))
    assert found.exact
    assert found.class_probs.shape == (4, 6, 3)
    assert_same(found.class_probs.sum(-1), torch.ones(4, 6).double())


def test_no_classes():
    with pytest.raises(ShapeError, match="two or more classes"):
        MCDropout(two_sites(1)).moments(X).class_probs  # noqa: B018


def test_no_covariance():
    with pytest.raises(ShapeError, match="is not known"):
        MCDropout(two_sites(65)).moments(X).covariance  # noqa: B018
    last = nn.Sequential(*two_sites(), nn.Tanh())
    with pytest.raises(ShapeError, match="is not known"):
        MCDropout(last).moments(X).covariance  # noqa: B018


def test_rows():
    found = MCDropout(two_sites()).moments(X)
    assert len(found[1:3]) == 2
    assert_same(found[1:3].covariance, found.covariance[1:3])
    joined = PredictiveMoments.concatenate([found[:2], found[2:]])
    assert_same(joined.variance, found.variance)
    assert set(found.to_numpy()) == {"mean", "std", "variance"}
