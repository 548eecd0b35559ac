"""Distributions q(ω) of weights: families of noise, and modules that carry them."""

from caveat.noise.base import Noise, NoisyLayer, NoisyModule
from caveat.noise.bernoulli import Bernoulli, BernoulliNoise
from caveat.noise.components import Components
from caveat.noise.concrete import Concrete, ConcreteNoise
from caveat.noise.decay import weight_decay_groups
from caveat.noise.dropconnect import DropConnect
from caveat.noise.factorised import FactorisedGaussian
from caveat.noise.gaussian import Gaussian, GaussianNoise
from caveat.noise.insertion import insert
from caveat.noise.low_rank import LowRank
from caveat.noise.mixture import Mixture
from caveat.noise.recurrent import GRU, LSTM
from caveat.noise.total import kl

__all__ = [
    "Bernoulli",
    "Gaussian",
    "DropConnect",
    "Concrete",
    "Mixture",
    "Components",
    "LowRank",
    "FactorisedGaussian",
    "LSTM",
    "GRU",
    "BernoulliNoise",
    "GaussianNoise",
    "ConcreteNoise",
    "insert",
    "kl",
    "weight_decay_groups",
    "Noise",
    "NoisyModule",
    "NoisyLayer",
]
