"""What was tried on a table, and what is said of it."""

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
