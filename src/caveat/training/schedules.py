"""How networks are fitted: for how long, in which batches, and at which rates.

The rate of a step is the peak times a decay, a function of the progress in [0, 1).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caveat import _validation as validation
from caveat.errors import InputTypeError, ParameterError

Shares = NDArray[np.float64]
Decay = Callable[[Shares], Shares]

WARM_UP = 0.1


@dataclass(frozen=True)
class EarlyStopping:
    """Hold out rows, and keep the weights that were best on them.

    Parameters
    ----------
    share : float
        Of the rows, held out.
    patience : int
        Epochs without a new best after which a network is given up.
    """

    share: float = 0.1
    patience: int = 20

    def __post_init__(self) -> None:
        validation.unit_interval("share", self.share)
        validation.positive_int("patience", self.patience)


@dataclass(frozen=True)
class Schedule:
    """How long and how fast networks learn.

    Parameters
    ----------
    epochs : int
        Passes over the rows.
    batch_size : int
        Rows of a step.
    learning_rate : float
        Of Adam, at its peak.
    decay : str
        How the rate falls: ``"cosine"``, ``"one_cycle"`` or ``"constant"``.
    keep_last : bool
        Whether an epoch ends with a smaller batch of the rows left over, or leaves
        them out (the next epoch has another order).
    early_stopping : EarlyStopping, optional
        Hold out rows and stop by them.

    Examples
    --------
    >>> Schedule(epochs=100, early_stopping=EarlyStopping(share=0.2)).n_train(50)
    40
    """

    epochs: int = 400
    batch_size: int = 32
    learning_rate: float = 1e-2
    decay: str = "cosine"
    keep_last: bool = False
    early_stopping: EarlyStopping | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            self._set(name, validation.positive_int(name, getattr(self, name)))
        rate = validation.positive("learning_rate", self.learning_rate)
        self._set("learning_rate", rate)
        decay(self.decay)
        stopping: Any = self.early_stopping
        if stopping is not None and not isinstance(stopping, EarlyStopping):
            raise InputTypeError(
                "early_stopping must be EarlyStopping(share=..., patience=...) or "
                f"None. Got {stopping!r}."
            )

    def n_train(self, n_rows: int) -> int:
        """How many of so many rows are learned from; the others stop the training."""
        if self.early_stopping is None:
            return n_rows
        held = max(1, round(self.early_stopping.share * n_rows))
        if held >= n_rows:
            raise ParameterError(
                f"early_stopping holds out {held} of {n_rows} rows and leaves none to "
                f"learn from. Lower its share, or give more rows."
            )
        return n_rows - held

    def steps_per_epoch(self, n_rows: int) -> int:
        """Batches in one epoch of so many rows; at least one."""
        whole, left = divmod(n_rows, self.batch_size)
        keep_last = self.keep_last or not whole
        return whole + (1 if left and keep_last else 0)

    def n_steps(self, n_rows: int) -> int:
        """Steps on so many rows, if nothing stops them early."""
        return self.epochs * self.steps_per_epoch(n_rows)

    def _set(self, name: str, value: object) -> None:
        """A checked value as a plain one, so that equal schedules are written alike."""
        object.__setattr__(self, name, value)


def constant(progress: Shares) -> Shares:
    """The peak rate throughout."""
    return np.ones_like(progress)


def cosine(progress: Shares) -> Shares:
    """From the peak to zero along half a cosine."""
    return 0.5 * (1 + np.cos(math.pi * progress))


def one_cycle(progress: Shares) -> Shares:
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


DECAYS: dict[str, Decay] = {
    "constant": constant,
    "cosine": cosine,
    "one_cycle": one_cycle,
}


def decay(name: str) -> Decay:
    """The decay of that name.

    Parameters
    ----------
    name : str
        ``"constant"``, ``"cosine"`` or ``"one_cycle"``.

    Returns
    -------
    callable
        From progress, the share of the steps already done, to the factor.
    """
    if name not in DECAYS:
        known = ", ".join(map(repr, DECAYS))
        raise ParameterError(f"decay must be one of {known}. Got {name!r}.")
    return DECAYS[name]
