"""Closed forms against draws: a formula that they contradict is not used.

A last line of defence. That a formula holds is proven where it is found; this is to
notice if such a proof has a hole. So the test must not fire by chance, not once in a
lifetime of calls, and is blunt: it sees a variance that is off by a factor.
"""

import math

from torch import Tensor

LEAST_DRAWS = 32
_SIGMAS = 12.0
_EVENTS = 1.0  # expected number of dropped units, below which nothing can be said
_MANY_EVENTS = 30.0  # with so many expected, that there be none is out of the question
_ROUNDING = 1e-5  # of a mean, what variances may be off by


def contradicted(
    mean: Tensor,
    variance: Tensor,
    drawn_mean: Tensor,
    drawn_variance: Tensor,
    n_draws: int,
    excess: float,
) -> bool:
    """Whether draws cannot have come from a law with this mean and variance.

    Parameters
    ----------
    mean, variance : Tensor, shape (batch, *event)
        In closed form.
    drawn_mean, drawn_variance : Tensor, shape (batch, *event)
        Of the draws.
    n_draws : int
        How many they are.
    excess : float
        Excess kurtosis of the noise. A sum of independent terms has no more.
    """
    events = n_draws / (excess + 6.0)  # a mask of rate f has 1/(f(1-f)) - 6
    if n_draws < LEAST_DRAWS or events < _EVENTS:
        return False
    rounding = (_ROUNDING * mean.double()).square()
    expected = float((variance.double() + rounding).sum())
    if not math.isfinite(expected) or expected <= 0.0:
        return False
    gap = float((drawn_mean.double() - mean.double()).square().sum())
    # Rows share their noise, so all elements together count as one.
    if gap * n_draws > _SIGMAS**2 * expected:
        return True
    ratio = float((drawn_variance.double() + rounding).sum()) / expected
    error = math.sqrt((excess + 2.0) / n_draws)
    too_low = events > _MANY_EVENTS and ratio < math.exp(-_SIGMAS * error)
    return ratio > 1.0 + _SIGMAS * error or too_low
