"""A drop rate that falls as data come in, so that dropout's posterior concentrates."""

from caveat import _validation as check


def annealed_rate(drop_rate: float, n_rows: int, *, after: int | None) -> float:
    """The drop rate after ``n_rows`` rows (ledger E150).

    With a fixed rate f the law of the masks is the same after a million rows as after
    a hundred: a network's draws stay spread, and the mean of the linear model stays
    shrunk. If the odds f / (1 - f) fall as 1/n both vanish at the pace of a
    posterior: the masks then weigh as much as a fixed number of rows, as a prior does.

    Parameters
    ----------
    drop_rate : float
        f, up to ``after`` rows.
    n_rows : int
        n, seen so far.
    after : int or None
        Rows from which on the odds fall; None keeps the rate.

    Returns
    -------
    float

    Examples
    --------
    >>> [round(annealed_rate(0.5, n, after=10), 4) for n in (0, 10, 30, 990)]
    [0.5, 0.5, 0.25, 0.01]
    """
    if after is None or n_rows <= after:
        return drop_rate
    # E150: f_n / (1 - f_n) = f / (1 - f) min(1, n0 / n)
    odds = drop_rate / (1.0 - drop_rate) * after / n_rows
    return odds / (1.0 + odds)


def check_after(after: int | None) -> int | None:
    """Rows after which a rate falls, or None."""
    return None if after is None else check.positive_int("anneal_after", after)
