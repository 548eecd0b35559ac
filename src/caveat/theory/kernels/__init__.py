"""Covariance functions of non-linearities: the Gaussian processes behind networks."""

from caveat.theory.kernels.base import Nonlinearity
from caveat.theory.kernels.features import RandomFeatures
from caveat.theory.kernels.limit import gp_of
from caveat.theory.kernels.logistic import ErfMixture, Tanh
from caveat.theory.kernels.naming import as_nonlinearity
from caveat.theory.kernels.network import Masks, NetworkKernel
from caveat.theory.kernels.piecewise import Jump, LeakyRelu
from caveat.theory.kernels.polynomials import Identity, Square
from caveat.theory.kernels.quadrature import expected_product
from caveat.theory.kernels.recursion import (
    Layer,
    network_covariance,
    network_gram,
    network_variance,
)
from caveat.theory.kernels.sigmoids import Erf, ZeroToOne
from caveat.theory.kernels.smooth import Smooth
from caveat.theory.kernels.waves import CosineWave, SineWave, UniformPhase

__all__ = [
    "NetworkKernel",
    "Masks",
    "gp_of",
    "RandomFeatures",
    "Layer",
    "network_covariance",
    "network_gram",
    "network_variance",
    "expected_product",
    "Nonlinearity",
    "as_nonlinearity",
    "LeakyRelu",
    "Jump",
    "Erf",
    "ZeroToOne",
    "Tanh",
    "ErfMixture",
    "CosineWave",
    "SineWave",
    "UniformPhase",
    "Identity",
    "Square",
    "Smooth",
]
