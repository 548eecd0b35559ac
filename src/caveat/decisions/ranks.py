"""The rank among known rows that a new row, drawn alike, keeps with a probability."""

import math

import torch

_STEPS = 8  # of rounding: of some operations, and of the same row in another batch


def covering_rank(n_rows: int, level: float) -> int:
    """The least k such that a new score is at most s_(k) with probability ``level``.

    Of n + 1 scores drawn alike, each is equally probable to be the last of which the
    rank is asked, so that Pr(new <= s_(k)) >= k / (n + 1) (ledger E113).

    Parameters
    ----------
    n_rows : int
        n, the known scores.
    level : float
        In (0, 1].

    Returns
    -------
    int
        At least 1; above ``n_rows`` if they are too few to tell.

    Examples
    --------
    >>> covering_rank(99, 0.9), covering_rank(5, 0.9)
    (90, 6)
    """
    # E113: k = ceil((n + 1) level), not disturbed by the rounding of 10 times 0.9
    return max(math.ceil(round((n_rows + 1) * level, 9)), 1)


def least_rows(level: float) -> int:
    """The least number of rows for which there is a rank that covers ``level``."""
    return math.ceil(round(level / (1.0 - level), 9))


def slack(dtype: torch.dtype) -> float:
    """How far a limit is moved, relative to size, so that what lies on it is inside.

    Scores that tie lie on the limit, as many as there are. A row that is just as good
    must not fall out because its numbers were rounded in another way: a limit times a
    standard deviation is not always the distance that was divided by it.

    Parameters
    ----------
    dtype : torch.dtype
        Of the numbers that were rounded.

    Returns
    -------
    float
        Some steps of that type.
    """
    return _STEPS * torch.finfo(dtype).eps
