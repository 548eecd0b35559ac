"""Learning-rate schedules: a factor on the peak rate, given the progress in [0, 1)."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from caveat.errors import ParameterError

Factors = NDArray[np.float64]
Schedule = Callable[[Factors], Factors]

WARM_UP = 0.1


def constant(progress: Factors) -> Factors:
    """The peak rate throughout."""
    return np.ones_like(progress)


def cosine(progress: Factors) -> Factors:
    """From the peak to zero along half a cosine."""
    return 0.5 * (1 + np.cos(math.pi * progress))


def one_cycle(progress: Factors) -> Factors:
    """A tenth of the time linearly up to the peak, then along a cosine to zero."""
    falling = cosine((progress - WARM_UP) / (1 - WARM_UP))
    return np.where(progress < WARM_UP, progress / WARM_UP, falling)


def inverse_decay(step: float, base: float, *, gamma: float, power: float) -> float:
    """The learning rate of Caffe's ``inv`` policy, base (1 + gamma step)^-power.

    The papers' CO2, solar and MNIST networks were trained with it.

    Parameters
    ----------
    step : float
        Updates done so far.
    base : float
        The rate at the start.
    gamma, power : float
        How soon and how steeply it falls.

    Returns
    -------
    float
    """
    return float(base * (1.0 + gamma * step) ** -power)


SCHEDULES: dict[str, Schedule] = {
    "constant": constant,
    "cosine": cosine,
    "one_cycle": one_cycle,
}


def schedule(name: str) -> Schedule:
    """The schedule of that name.

    Parameters
    ----------
    name : str
        ``"constant"``, ``"cosine"`` or ``"one_cycle"``.

    Returns
    -------
    callable
        From progress, the share of the steps already done, to the factor.
    """
    if name not in SCHEDULES:
        known = ", ".join(map(repr, SCHEDULES))
        raise ParameterError(f"schedule must be one of {known}. Got {name!r}.")
    return SCHEDULES[name]
