"""A module becomes the function y(x, ω)."""

from caveat.sampling.context import sampling
from caveat.sampling.mcdropout import FunctionDraw, MCDropout
from caveat.sampling.registry import register_noise
from caveat.sampling.sites import Site, Sites, inspect

__all__ = [
    "FunctionDraw",
    "MCDropout",
    "Site",
    "Sites",
    "inspect",
    "register_noise",
    "sampling",
]
