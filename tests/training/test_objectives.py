"""Losses are minus log-likelihoods, up to constants."""

import math

import pytest
import torch
from torch.distributions import Categorical, Normal

from caveat.errors import ParameterError
from caveat.training.objectives import (
    LOG_PRECISION_LIMIT,
    GaussianWithPrecision,
    SoftmaxCrossEntropy,
    SquaredError,
    Weighted,
    split_head,
)


def test_squared_error_is_the_gaussian_of_unit_precision():
    outputs, targets = torch.randn(2, 5, 3), torch.randn(2, 5, 3)
    logs = Normal(outputs, 1.0).log_prob(targets).sum(-1)
    constant = 1.5 * math.log(2 * math.pi)
    torch.testing.assert_close(
        SquaredError().loss(outputs, targets), constant * -1 - logs
    )


def test_noise_head_is_the_gaussian_of_its_own_precision():
    outputs, targets = torch.randn(5, 4), torch.randn(5, 2)
    mean, log_precision = outputs.chunk(2, -1)
    logs = Normal(mean, (-0.5 * log_precision).exp()).log_prob(targets).sum(-1)
    found = GaussianWithPrecision().loss(outputs, targets)
    torch.testing.assert_close(found, -math.log(2 * math.pi) - logs)


def test_softmax_is_the_categorical():
    outputs, targets = torch.randn(6, 3), torch.arange(6)[:, None] % 3
    logs = Categorical(logits=outputs).log_prob(targets[:, 0])
    torch.testing.assert_close(SoftmaxCrossEntropy(3).loss(outputs, targets), -logs)


def test_what_follows_from_the_likelihood():
    squared, head, classes = (
        SquaredError(),
        GaussianWithPrecision(),
        SoftmaxCrossEntropy(4),
    )
    assert [o.n_outputs(2) for o in (squared, head)] == [2, 4]
    assert classes.n_outputs(1) == 4
    assert [o.precision for o in (squared, head, classes)] == [None, 1.0, 1.0]
    assert [o.has_head for o in (squared, head, classes)] == [False, True, False]
    assert [o.scales_targets for o in (squared, head, classes)] == [True, True, False]
    assert classes == SoftmaxCrossEntropy(4) != SoftmaxCrossEntropy(3)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_beta_weighs_the_likelihoods_gradient(beta):
    outputs = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.randn(7, 2, dtype=torch.float64)
    mean, log_precision = outputs.chunk(2, -1)
    normal = Normal(mean, (-0.5 * log_precision).exp())
    weights = (-beta * log_precision).exp().detach()
    (-(weights * normal.log_prob(targets)).sum()).backward()
    found = GaussianWithPrecision(beta=beta).gradient(outputs.detach(), targets)
    torch.testing.assert_close(found, outputs.grad)


def test_with_beta_one_means_are_learned_as_by_a_squared_error():
    outputs, targets = torch.randn(7, 4), torch.randn(7, 2)
    found = GaussianWithPrecision(beta=1.0).gradient(outputs, targets)[:, :2]
    expected = SquaredError().gradient(outputs[:, :2], targets)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("beta", [-0.1, 1.5, float("nan")])
def test_beta_is_a_share(beta):
    with pytest.raises(ParameterError, match=r"beta must be in \[0, 1\]"):
        GaussianWithPrecision(beta=beta)


def test_log_precisions_are_bounded():
    _, logs = split_head(torch.tensor([[0.0, 50.0], [0.0, -50.0]]))
    assert logs[:, 0].tolist() == [LOG_PRECISION_LIMIT, -LOG_PRECISION_LIMIT]


def test_a_weight_multiplies_loss_and_gradient():
    outputs, targets = torch.randn(5, 1), torch.randn(5, 1)
    weight = torch.rand(5, 1)
    base, weighted = SquaredError(), Weighted(SquaredError())
    both = torch.cat([targets, weight], 1)
    assert torch.equal(
        weighted.loss(outputs, both), base.loss(outputs, targets) * weight[:, 0]
    )
    expected = base.gradient(outputs, targets) * weight
    assert torch.equal(weighted.gradient(outputs, both), expected)
    assert weighted.n_outputs(2) == 1 and weighted.precision is None
