"""Why masks may not be drawn anew inside Metropolis-type samplers, and how to tell.

A sampler that accepts or rejects needs one fixed density. NumPyro's kernels freeze
the random key of the model, so that "fresh" masks would silently be a few fixed ones;
and if they were fresh, one mask per datum would give an unbiased estimate of the
likelihood of eq. 3, so the sampler would target the *naive* posterior.
"""

import sys
from collections.abc import Iterator
from types import FrameType

from numpyro.infer.autoguide import AutoGuide
from numpyro.infer.mcmc import MCMCKernel

from caveat.errors import UnsupportedModelError

_POTENTIALS = {"potential_energy", "initialize_model"}


def refuse_fresh_masks() -> None:
    """Raise if the model is being run for a sampler that needs a fixed density."""
    owners = []
    functions = set()
    for frame in _frames():
        if frame.f_globals.get("__name__", "").startswith("numpyro."):
            owners.append(frame.f_locals.get("self"))
            functions.add(frame.f_code.co_name)
    kernels = [type(o).__name__ for o in owners if isinstance(o, MCMCKernel)]
    guided = any(isinstance(owner, AutoGuide) for owner in owners)
    if kernels or (functions & _POTENTIALS and not guided):
        raise UnsupportedModelError(_REASON.format(where=_where(kernels)))


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _where(kernels: list[str]) -> str:
    return kernels[-1] if kernels else "a potential energy made by NumPyro"


_REASON = """Fresh masks cannot be used inside {where}.
It needs one fixed density: NumPyro would freeze the key of the masks, and masks that
really are drawn anew make the sampler target the naive posterior of eq. 3 instead.
Use masks that are fixed: Enumerate(), ClosedForm(), Quadrature(), Balanced() or
Fixed(count, seed=0). Fresh masks are right in SVI and stochastic-gradient samplers."""
