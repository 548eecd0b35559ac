"""The expected log-likelihood that takes the place of the likelihood (eq. 13)."""

import math

import numpy as np
import scipy.sparse as sp

from caveat.maxent.linear.arrays import Array
from caveat.maxent.linear.design import Design
from caveat.maxent.linear.rows import ShiftedRows


def expected_log_likelihood(
    design: Design,
    y: Array,
    *,
    weights: Array,
    variance: float,
    level: float = 0.0,
) -> float:
    """sum_i E log N(y_i; b + (xi o (x_i - o))'w, v) over the noise (ledger E53).

    Parameters
    ----------
    design : Design
        Data and noise.
    y : array, shape (n,)
        The response.
    weights : array, shape (p,)
        w.
    variance : float
        v.
    level : float, default 0
        b.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from caveat.maxent.linear import Design, Features, make_noise
    >>> x = np.array([[1, 0.5], [-0.4, 1.2], [0.8, -1], [0.3, 0.9]])
    >>> design = Design(Features(x), make_noise(0.4, 2), prior_precision=0.5)
    >>> y, w = np.array([1.2, 0.1, 0.4, 0.9]), np.array([0.5, -0.2])
    >>> round(expected_log_likelihood(design, y, weights=w, variance=0.8), 9)
    -4.50785453
    """
    features, noise = design.features, design.noise
    rows = ShiftedRows.less(features.matrix, design.intercept.origin(features))
    gap = y - level - rows.times(noise.mean * weights)
    first, unit_of = noise.units
    members = (weights, (np.arange(len(weights)), unit_of))
    shares = rows.times(
        sp.csr_array(members, shape=(len(weights), len(first))).toarray()
    )
    spread = np.square(shares).sum(0) @ noise.variance[first]
    # E53: -(n/2) log 2 pi v - (|y - yhat|^2 + f (1 - f) w'Lambda1 w) / 2v
    return float(
        -0.5 * len(y) * math.log(2.0 * math.pi * variance)
        - 0.5 * (gap @ gap + spread) / variance
    )
