"""Moments of functions of a Gaussian variable, against adaptive quadrature."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, special

from caveat.sampling.closed_form import activations

FUNCTIONS = {
    "relu": (activations.relu, lambda z: np.maximum(z, 0.0)),
    "leaky_relu": (activations.leaky_relu, lambda z: np.where(z > 0, z, 0.01 * z)),
    "erf": (activations.erf, special.erf),
    "tanh": (activations.tanh, np.tanh),
    "sigmoid": (activations.sigmoid, special.expit),
}
MEANS = (-6.0, -1.3, 0.0, 0.4, 3.0)
STDS = (0.01, 0.3, 0.49, 0.51, 1.0, 4.0, 30.0)


def double(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def expected(function, mean: float, std: float) -> float:
    def integrand(u: float) -> float:
        return function(mean + std * u) * math.exp(-u * u / 2)

    kink = [u for u in (-mean / std,) if abs(u) < 9.5]
    found = integrate.quad(
        integrand, -9.5, 9.5, points=kink, limit=600, epsabs=1e-12, epsrel=1e-12
    )
    return found[0] / math.sqrt(2 * math.pi)


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("std", STDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_by_quadrature(name, std):
    """E90, E91, E92, E93."""
    function, plain = FUNCTIONS[name]
    for mean in MEANS:
        found = function(double(mean), double(std**2))
        centre = expected(plain, mean, std)
        spread = expected(lambda z, c=centre: (plain(z) - c) ** 2, mean, std)
        assert abs(found.mean.item() - centre) < 1e-8 * max(1.0, std)
        assert abs(found.variance.item() - spread) < 1e-8 * max(1.0, std**2)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slope_is_the_derivative_of_the_mean(name):
    function, _ = FUNCTIONS[name]
    for std in (0.3, 2.0):
        mean = double(*MEANS)
        variance = torch.full_like(mean, std**2)
        step = 1e-5
        up, down = (function(mean + s, variance).mean for s in (step, -step))
        slope = function(mean, variance).slope
        assert torch.allclose(slope, (up - down) / (2 * step), atol=1e-8)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_certain_variables(name):
    """Without variance the function itself comes out."""
    function, plain = FUNCTIONS[name]
    found = function(double(*MEANS), torch.zeros(5, dtype=torch.float64))
    assert np.allclose(found.mean, plain(np.array(MEANS)), atol=1e-11)
    assert not found.variance.abs().max() > 1e-15


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32_does_not_cancel(name):
    """A variance far below the square of the mean survives single precision."""
    function, _ = FUNCTIONS[name]
    mean, variance = double(1.5, 30.0), double(1e-6, 1e-4)
    exact = function(mean, variance).variance
    found = function(mean.float(), variance.float()).variance.double()
    assert torch.allclose(found, exact, rtol=2e-3, atol=1e-12)


def test_largest_of_two_by_quadrature():
    """E90."""
    m1, v1, m2, v2 = 0.4, 0.5, -0.2, 1.7
    found = activations.largest_of_two(*(double(value) for value in (m1, v1, m2, v2)))

    def given(z: float) -> float:
        part = activations.relu(double(m1 - z), double(v1))
        return z + part.mean.item()

    def square_given(z: float) -> float:
        part = activations.relu(double(m1 - z), double(v1))
        square = part.variance + part.mean.square()
        return z * z + 2 * z * part.mean.item() + square.item()

    mean = expected(given, m2, math.sqrt(v2))
    square = expected(square_given, m2, math.sqrt(v2))
    assert abs(found.mean.item() - mean) < 1e-9
    assert abs(found.variance.item() - (square - mean**2)) < 1e-9


def test_blocks_make_no_difference():
    mean, variance = torch.randn(5000, 20), torch.rand(5000, 20)
    parts = activations.in_blocks(activations.relu, mean, variance)
    assert len(parts) > 1
    whole = activations.relu(mean, variance)
    for found, same in zip(zip(*parts, strict=True), whole, strict=True):
        assert torch.equal(torch.cat(found), same)
