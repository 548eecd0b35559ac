"""Caveat: every prediction with its caveat. Dropout as Bayesian inference."""

from caveat import errors
from caveat._version import __version__
from caveat.predictive import CategoricalPredictive, GaussianPredictive, Predictive
from caveat.sampling.context import sampling
from caveat.sampling.mcdropout import MCDropout
from caveat.sampling.registry import register_noise
from caveat.sampling.sites import Site, Sites, inspect

__all__ = [
    "CategoricalPredictive",
    "GaussianPredictive",
    "MCDropout",
    "Predictive",
    "Site",
    "Sites",
    "__version__",
    "errors",
    "inspect",
    "register_noise",
    "sampling",
]
