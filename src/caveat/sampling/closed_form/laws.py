"""Mean and variance of what a site draws."""

from functools import singledispatch
from typing import NamedTuple

from caveat.sampling.closed_form.beliefs import NotSupportedError
from caveat.sampling.noise import Exponential, Integers, Law, Mask, Normal, Uniform


class LawMoments(NamedTuple):
    """Of each number that a law gives."""

    mean: float
    variance: float


@singledispatch
def law_moments(law: Law) -> LawMoments:
    """Mean and variance of a law (ledger E86).

    Examples
    --------
    >>> law_moments(Mask(keep_prob=0.5, scale=2.0))
    LawMoments(mean=1.0, variance=1.0)
    """
    raise NotSupportedError(f"noise of the law {law}")


@law_moments.register
def _(law: Mask) -> LawMoments:
    # E86: E m = s p,  Var m = s² p (1 - p)
    keep, scale = law.keep_prob, law.scale
    return LawMoments(scale * keep, scale**2 * keep * (1.0 - keep))


@law_moments.register
def _(law: Normal) -> LawMoments:
    return LawMoments(law.mean, law.std**2)


@law_moments.register
def _(law: Uniform) -> LawMoments:
    return LawMoments(law.centre, (law.high - law.low) ** 2 / 12.0)


@law_moments.register
def _(law: Exponential) -> LawMoments:
    return LawMoments(1.0 / law.rate, law.rate**-2)


@law_moments.register
def _(law: Integers) -> LawMoments:
    size = law.high - law.low
    return LawMoments((law.low + law.high - 1) / 2.0, (size**2 - 1) / 12.0)


def law_excess(law: Law) -> float:
    """Excess kurtosis of a law, or 0 if it is below that of a Gaussian.

    Examples
    --------
    >>> law_excess(Mask(keep_prob=0.9))
    5.11...
    """
    if isinstance(law, Mask):
        spread = law.keep_prob * (1.0 - law.keep_prob)
        return max(0.0, 1.0 / spread - 6.0) if spread > 0.0 else 0.0
    return 6.0 if isinstance(law, Exponential) else 0.0
