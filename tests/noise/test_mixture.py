"""Paper 000's mixture with a width that stays: moments and the exact KL."""

import pytest
import torch

from caveat import noise, theory
from caveat.errors import ParameterError
from tests.noise.families import assert_draws_have, bernoulli_covariance, linear


def test_moments():
    covariance = bernoulli_covariance(linear(), 0.3 / 0.7)
    covariance = covariance + 0.5**2 * torch.eye(8).double()
    assert_draws_have(noise.Mixture(0.3, std=0.5), covariance)


@pytest.mark.parametrize("sd", [0.01, 0.5])
def test_kl_is_that_of_theory_in_full(sd):
    layer, keep, length = linear(), 0.7, 0.6
    known = {"component_std": sd, "lengthscale": length}
    weights = theory.kl_row_exact(layer.weight.T / keep, keep_prob=keep, **known)
    expected = weights.sum() + theory.kl_bias(layer.bias, **known)
    torch.testing.assert_close(noise.Mixture(0.3, sd).wrap(layer).kl(length), expected)


def test_kl_and_proposition_1_differ_by_the_information():
    """The paper's value is larger by I <= H(p) for each of the three rows."""
    layer, keep = linear(), 0.7
    upper = theory.kl_row_upper_bound(
        layer.weight.T / keep, keep_prob=keep, component_std=0.5
    ).sum() + theory.kl_bias(layer.bias, component_std=0.5)
    gap = upper - noise.Mixture(0.3, std=0.5).wrap(layer).kl(1.0)
    assert 0 < gap < 3 * theory.mask_entropy(keep)


def test_a_draw_is_one_of_two_components():
    """For small s each row of a draw is near M or near 0."""
    wrapped = noise.Mixture(0.5, std=1e-6).wrap(linear())
    means = wrapped.weight.detach() / 0.5
    for _ in range(20):
        weight, bias = wrapped.sample()
        near = [(weight - c * means).abs().amax(0) < 1e-4 for c in (0, 1)]
        assert (near[0] | near[1]).all()
        assert ((bias - wrapped.bias).abs() < 1e-4).all()


def test_bad_arguments():
    with pytest.raises(ParameterError, match="std"):
        noise.Mixture(0.1, std=0.0)
    with pytest.raises(ParameterError, match="Mixture"):
        noise.Mixture(1.0, std=0.1)
