"""What was tried on a table, and what is said of it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass


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
    """

    name: str
    log_likelihood: float
    weight: float


DIVERGED = """the networks {name!r} diverged and were left out of the pool. Look for
outliers in y."""
WORSE = """the networks {name!r} are worse than a constant on rows that they have not
learned from, and were left out of the pool."""


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
