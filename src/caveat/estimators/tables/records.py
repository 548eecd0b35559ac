"""What was tried on a table, and what is said of it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

_SURE = 2.0  # standard errors


@dataclass(frozen=True)
class Candidate:
    """A model that was tried, and what it is worth.

    Attributes
    ----------
    name : str
    log_likelihood : float
        Mean log density or probability of rows that it has not learned from: in the
        units of y, under noise of its own that is the same everywhere; or of labels.
    weight : float
        Its weight in the pool: in a mean, on average over outputs; or in the logits.
    loss_curve : tuple of float
        Of networks: their mean loss on training rows, in units of their own, after
        equal parts of their steps.
    """

    name: str
    log_likelihood: float
    weight: float
    loss_curve: tuple[float, ...] = ()


DIVERGED = """the networks {name!r} diverged and were left out of the pool. Look for
outliers in y."""
WORSE = """the networks {names} are worse than a constant on rows that they have not
learned from, and were left out of the pool: there may be little to learn from X."""


def is_above_zero(
    values: NDArray[np.float64], weight: NDArray[np.float64] | None = None
) -> bool:
    """Whether the mean of values is above zero by more than their spread explains.

    Parameters
    ----------
    values : array, shape (rows,)
        Say, by how much one model is worse than another on each row.
    weight : array, shape (rows,), optional
        Of the rows.

    Returns
    -------
    bool
        False for fewer than three rows.
    """
    if len(values) < 3:
        return False
    own = np.ones(len(values)) if weight is None else weight
    mean = float(own @ values / own.sum())
    error = np.sqrt(np.square(own * (values - mean)).sum()) / own.sum()
    return bool(mean > _SURE * error and mean > 1e-9)


def curve_of(losses: Tensor | None) -> tuple[float, ...]:
    """The mean of the loss curves of some networks.

    Parameters
    ----------
    losses : Tensor, shape (networks, looks), or None
        NaN after an early end.

    Returns
    -------
    tuple of float
        Up to the first look that no network has reached.
    """
    if losses is None:
        return ()
    mean = losses.nanmean(0)
    return tuple(mean[~mean.isnan()].tolist())


def told(candidates: Sequence[Candidate]) -> str:
    """What was chosen and why, in one line.

    Parameters
    ----------
    candidates : sequence of Candidate
        All that were tried.

    Returns
    -------
    str
    """
    used = [c for c in candidates if c.weight > 0]
    parts = ", ".join(f"{c.weight:.2f} {c.name} ({c.log_likelihood:.3f})" for c in used)
    parts = parts or "nothing: all classes are equally probable"
    return (
        f"{parts}; of {len(candidates)} candidates, by the log-likelihood of rows held "
        "out (in brackets)"
    )


def say(line: str, progress: bool | None) -> None:
    """Print a line where a progress bar would be shown.

    Parameters
    ----------
    line : str
        What to say.
    progress : bool or None
        False never says it; None only on a terminal.
    """
    if progress or (progress is None and sys.stderr.isatty()):
        print(line, file=sys.stderr)
