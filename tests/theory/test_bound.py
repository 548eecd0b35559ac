"""The bound, and that minimising it is dropout training with weight decay."""

import itertools
import math

import pytest
import torch
from torch.testing import assert_close

from caveat.errors import ParameterError, ShapeError
from caveat.theory import (
    Loss,
    bias_l2_penalty,
    elbo,
    gaussian_log_likelihood,
    kl_bias,
    kl_row_exact,
    kl_row_lower_bound,
    kl_row_upper_bound,
    l2_penalty,
    objective_from_elbo,
)

N_TRAIN, TAU, LENGTH, STD = 5, 2.5, 0.7, 1e-3
KEEPS = (0.75, 0.5)  # of the inputs, of the hidden units
SHAPES = [(3, 2), (3,), (2, 3), (2,)]


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def random(*shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


X, Y = random(N_TRAIN, 2, seed=0), random(N_TRAIN, 2, seed=1)


def masks(n_units, *, odds):
    """All masks; one with k units kept comes odds^k times, so p = odds / (odds + 1)."""
    every = itertools.product((0.0, 1.0), repeat=n_units)
    rows = [mask for mask in every for _ in range(odds ** int(sum(mask)))]
    return torch.tensor(rows, dtype=torch.float64)


def outputs(weights):
    """The net under every pair of masks, unscaled; shape (draws, rows, 2)."""
    first, first_bias, last, last_bias = weights
    pairs = itertools.product(masks(2, odds=3), masks(3, odds=1))
    passes = []
    for inputs, hidden in pairs:
        units = torch.tanh((X * inputs) @ first.T + first_bias)
        passes.append((units * hidden) @ last.T + last_bias)
    return torch.stack(passes)


def dropout_objective(weights, loss):
    """Eq. 1 of paper 001: loss and penalties, averaged over all masks."""
    prior = {
        "precision": TAU, "lengthscale": LENGTH, "n_train": N_TRAIN, "loss": loss
    }  # fmt: skip
    error = loss.scale * (outputs(weights) - Y).square().sum(-1).mean()
    penalties = [
        l2_penalty(keep_prob=KEEPS[0], **prior),
        bias_l2_penalty(**prior),
        l2_penalty(keep_prob=KEEPS[1], **prior),
        bias_l2_penalty(**prior),
    ]
    terms = zip(penalties, weights, strict=True)
    return error + sum(penalty * w.square().sum() for penalty, w in terms)


def bound(weights, kl):
    """000 eqs 7, 12: expected log-likelihood less the KL of weights and biases."""
    first, first_bias, last, last_bias = weights
    prior = {"component_std": STD, "lengthscale": LENGTH}
    divergence = (
        kl(first.T, keep_prob=KEEPS[0], **prior).sum()
        + kl(last.T, keep_prob=KEEPS[1], **prior).sum()
        + kl_bias(first_bias, **prior)
        + kl_bias(last_bias, **prior)
    )
    likelihood = gaussian_log_likelihood(outputs(weights), Y, precision=TAU)
    return elbo(likelihood, divergence, n_train=N_TRAIN)


def some_weights(seed):
    return [
        random(*shape, seed=10 * seed + place).requires_grad_()
        for place, shape in enumerate(SHAPES, start=2)
    ]


@pytest.mark.parametrize("kl", [kl_row_lower_bound, kl_row_upper_bound, kl_row_exact])
@pytest.mark.parametrize(
    "loss",
    [Loss.half_squared_error(), Loss.squared_error(), Loss.mean_squared_error(8)],
    ids=str,
)
def test_minus_the_bound_is_the_dropout_objective(kl, loss):
    """000 eqs 14-15 and 001 eq. 9 equal eq. 1: the same gradient, a constant apart."""
    gaps = []
    for seed in range(4):
        weights = some_weights(seed)
        ours = objective_from_elbo(
            bound(weights, kl), precision=TAU, n_train=N_TRAIN, loss=loss
        )
        theirs = dropout_objective(weights, loss)
        gradients = [torch.autograd.grad(value, weights) for value in (ours, theirs)]
        assert_close(*gradients, rtol=1e-9, atol=1e-11)
        gaps.append((ours - theirs).item())
    assert gaps == pytest.approx([gaps[0]] * 4, abs=1e-11)
    assert gaps[0] != pytest.approx(0, abs=1)  # the constant is not small


def test_the_constant():
    """D/(2 tau) log(2 pi/tau), and the spread of all weights less H(p) of each unit."""
    weights = some_weights(0)
    found = objective_from_elbo(
        bound(weights, kl_row_lower_bound), precision=TAU, n_train=N_TRAIN
    ) - dropout_objective(weights, Loss.half_squared_error())
    n_weights = sum(math.prod(shape) for shape in SHAPES)
    scaled = (LENGTH * STD) ** 2
    spread = 0.5 * n_weights * (scaled - math.log(scaled) - 1)
    entropy = -2 * (0.75 * math.log(0.75) + 0.25 * math.log(0.25)) + 3 * math.log(2)
    expected = math.log(2 * math.pi / TAU) / TAU + (spread - entropy) / (TAU * N_TRAIN)
    assert found.item() == pytest.approx(expected, rel=1e-12)


def test_expected_half_squared_error_of_the_three_unit_net():
    """theory.md 13: relu, keep .9 and .5, unscaled: E half squared error .397."""
    first = double([[0.5, -1], [1, 0.5], [-0.5, 1.5]])
    bias = double([0.1, -0.2, 0])
    last, x = double([1, -2, 0.5]), double([1.0, -1])
    pairs = itertools.product(masks(2, odds=9), masks(3, odds=1))
    draws = torch.stack(
        [
            (last @ (hidden * torch.relu(first @ (inputs * x) + bias)) + 0.25).reshape(
                1, 1
            )
            for inputs, hidden in pairs
        ]
    )
    y, tau = double([[0.5]]), 4.0
    likelihood = gaussian_log_likelihood(draws, y, precision=tau)
    expected = -tau * 0.397 - 0.5 * math.log(2 * math.pi / tau)
    assert likelihood.mean().item() == pytest.approx(expected, abs=1e-13)


def test_log_likelihood_restated():
    draws, y = random(4, 3, 2, seed=5), random(3, 2, seed=6)
    tau = double([0.5, 3.0])
    expected = torch.distributions.Normal(draws, tau.rsqrt()).log_prob(y).sum(-1)
    assert_close(gaussian_log_likelihood(draws, y, precision=tau), expected)


def test_a_batch_stands_for_all_rows():
    likelihood = random(6, 8, seed=7)
    halves = [elbo(part, 3.5, n_train=8) for part in likelihood.split(4, dim=1)]
    whole = elbo(likelihood, 3.5, n_train=8)
    assert_close(torch.stack(halves).mean(), whole)
    assert_close(whole, likelihood.mean(0).sum() - 3.5)


def test_moments_of_dropout_are_not_those_of_the_process():
    """One weight: the posterior of the Gaussian process is known, and q at its best."""
    x, y, keep = random(6, seed=10), random(6, seed=11), 0.8
    masks, chances = double([0.0, 1.0]), double([1 - keep, keep])

    def objective(m):
        gaps = y - m * masks[:, None] * x
        return chances @ (TAU / 2 * gaps.square().sum(-1)) + keep * LENGTH**2 / 2 * m**2

    for scale in (1.0, 3.0):
        y = scale * random(6, seed=11)
        precision = TAU * x.square().sum() + LENGTH**2
        mean, variance = TAU * (x @ y) / precision, 1 / precision
        best = torch.tensor(mean.item(), dtype=torch.float64, requires_grad=True)
        objective(best).backward()
        assert_close(best.grad, torch.zeros_like(best), atol=1e-12, rtol=0.0)
        ours = keep * best, keep * (1 - keep) * best**2
        assert_close(ours[0], keep * mean)
        assert (
            abs(ours[1] / variance - 1) > 0.1
        )  # and grows with y, as variance does not


def test_bad_arguments():
    likelihood = random(2, 3, seed=8)
    with pytest.raises(ShapeError, match="sum it first"):
        elbo(likelihood, random(3, seed=9), n_train=3)
    with pytest.raises(ShapeError, match="over the outputs"):
        elbo(random(2, 3, 1, seed=8), 1.0, n_train=3)
    with pytest.raises(ParameterError, match="n_train"):
        elbo(likelihood, 1.0, n_train=0)
    with pytest.raises(ShapeError, match="broadcast"):
        gaussian_log_likelihood(random(4, 3, 2, seed=5), random(3, seed=6), precision=1)
    with pytest.raises(ParameterError, match="precision"):
        objective_from_elbo(torch.tensor(1.0), precision=0.0, n_train=3)
