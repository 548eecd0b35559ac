"""A module becomes the function y(x, ω)."""

from caveat.sampling.context import stochastic
from caveat.sampling.mcdropout import FunctionDraw, MCDropout
from caveat.sampling.registry import register_noise
from caveat.sampling.sites import Site, Sites, audit

__all__ = [
    "FunctionDraw",
    "MCDropout",
    "Site",
    "Sites",
    "audit",
    "register_noise",
    "stochastic",
]
