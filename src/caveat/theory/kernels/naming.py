"""Non-linearities by name."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy import special

from caveat.errors import InputTypeError, ParameterError
from caveat.theory.kernels.base import Nonlinearity
from caveat.theory.kernels.covariances import Array
from caveat.theory.kernels.logistic import Tanh
from caveat.theory.kernels.piecewise import Jump, LeakyRelu
from caveat.theory.kernels.polynomials import Identity, Square
from caveat.theory.kernels.sigmoids import Erf, ZeroToOne
from caveat.theory.kernels.smooth import Smooth
from caveat.theory.kernels.waves import CosineWave, SineWave, UniformPhase

NonlinearityLike: TypeAlias = str | Nonlinearity | Callable[[Array], Array]


def gelu(z: Array) -> Array:
    """z Phi(z)."""
    return z * np.asarray(special.ndtr(z))


def tanh_gelu(z: Array) -> Array:
    """The approximation of GELU by tanh, as in ``nn.GELU(approximate="tanh")``."""
    return 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))


def silu(z: Array) -> Array:
    """z times its logistic sigmoid."""
    return z * np.asarray(special.expit(z))


def softplus(z: Array) -> Array:
    """log(1 + exp z)."""
    return np.logaddexp(0.0, z)


NAMED: dict[str, Nonlinearity] = {
    "relu": LeakyRelu(0.0),
    "leaky_relu": LeakyRelu(0.01),
    "abs": LeakyRelu(-1.0),
    "step": Jump(0.0, 1.0),
    "sign": Jump(-1.0, 1.0),
    "erf": Erf(),
    "probit": ZeroToOne(Erf(), 0.5),
    "cos": CosineWave(),
    "sin": SineWave(),
    "uniform_phase": UniformPhase(),
    "identity": Identity(),
    "square": Square(),
    "tanh": Tanh(),
    "sigmoid": ZeroToOne(Tanh(), 0.25),
    "gelu": Smooth(gelu),
    "silu": Smooth(silu),
    "softplus": Smooth(softplus),
}


def as_nonlinearity(value: Any) -> Nonlinearity:
    """A non-linearity from its name, from a smooth function, or as it is.

    Parameters
    ----------
    value : str, Nonlinearity or callable
        A name as in ``NAMED``; an object; or a smooth function of arrays.

    Returns
    -------
    Nonlinearity

    Examples
    --------
    >>> as_nonlinearity("relu")
    LeakyRelu(slope=0.0)
    """
    if isinstance(value, Nonlinearity):
        return value
    if isinstance(value, str):
        if value not in NAMED:
            raise ParameterError(
                f"nonlinearity must be one of {', '.join(map(repr, NAMED))}, or a "
                f"smooth function of arrays. Got {value!r}."
            )
        return NAMED[value]
    if callable(value) and not isinstance(value, type):
        return Smooth(value)
    raise InputTypeError(
        f"nonlinearity must be a name, a Nonlinearity or a smooth function of arrays. "
        f"Got {value!r} of type {type(value).__name__}."
    )
