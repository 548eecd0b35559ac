"""Weights of candidates: what each adds on rows that none of them learned from."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

Array = NDArray[np.float64]

TAILS = (2.0, 3.0, 5.0, 10.0, np.inf)  # degrees of freedom that are tried
_ROUNDS = 12
_STEPS = 400
_LEAST = 0.02  # a share below this is not worth a candidate
_TIED = 4.0  # nats that a sum of weights other than 1 costs per unit squared


def mean_shares(
    candidates: Array,
    y: Array,
    costs: Sequence[float],
    weight: Array,
    tails: Sequence[float] = TAILS,
) -> Array:
    """Shares of candidates in a mean: at least 0, sum 1, of highest likelihood.

    The noise is a Student-t whose scale and tails are found beside them, so that a few
    rows do not decide.

    Parameters
    ----------
    candidates : array, shape (rows, candidates)
        What each predicts for rows it has not learned from.
    y : array, shape (rows,)
        What was observed.
    costs : sequence of float
        Nats that a whole share of each must gain over one that costs nothing.
    weight : array, shape (rows,)
        Of the rows.
    tails : sequence of float
        Degrees of freedom that are tried.

    Returns
    -------
    array, shape (candidates,)
    """
    found = [_under_tails(candidates, y, np.array(costs), weight, t) for t in tails]
    _, shares = max(found, key=lambda pair: pair[0])
    shares = np.where(shares < _LEAST, 0.0, shares)
    return np.asarray(shares / shares.sum())


def _under_tails(
    candidates: Array, y: Array, costs: Array, weight: Array, df: float
) -> tuple[float, Array]:
    """Penalised log-likelihood and shares, by repeated weighted least squares."""
    gaps = y[:, None] - candidates
    best = int(np.argmin(np.median(np.abs(gaps), 0)))
    shares = np.zeros(len(costs))
    shares[best] = 1.0
    scale = max(_spread(gaps[:, best]), 1e-9)
    value = -np.inf
    for _ in range(_ROUNDS):
        error = gaps @ shares
        row = weight * _pull(error / scale, df)
        scale = max(np.sqrt((row @ np.square(error)) / weight.sum()), 1e-9)
        row = weight * _pull(error / scale, df)
        shares = _on_simplex((gaps * row[:, None]).T @ gaps / scale**2, costs, shares)
        error = gaps @ shares
        log = student_log_density(error / scale, df) - np.log(scale)
        value = float(weight @ log - costs @ shares)
    return value, shares


def _spread(gap: Array) -> float:
    return float(1.4826 * np.median(np.abs(gap))) or float(gap.std())


def _pull(z: Array, df: float) -> Array:
    """How much a standardised error counts in the score of a Student-t."""
    if np.isinf(df):
        return np.ones_like(z)
    return (df + 1.0) / (df + np.square(z))


def student_log_density(z: Array, df: float) -> Array:
    """Log density of standardised errors; df may be infinite.

    Parameters
    ----------
    z : array
        Errors over the scale.
    df : float
        Degrees of freedom.

    Returns
    -------
    array, of the same shape
    """
    if np.isinf(df):
        return -0.5 * np.square(z) - 0.5 * np.log(2 * np.pi)
    constant = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(df * np.pi)
    return np.asarray(constant - (df + 1) / 2 * np.log1p(np.square(z) / df))


def _on_simplex(gram: Array, costs: Array, start: Array) -> Array:
    """Minimise 1/2 w' gram w + costs' w over shares by projected gradients."""
    rate = 1.0 / max(float(np.linalg.eigvalsh(gram)[-1]), 1e-12)
    shares, ahead, turn = start, start, 1.0
    for _ in range(_STEPS):
        new = _projected(ahead - rate * (gram @ ahead + costs))
        later = 0.5 * (1 + np.sqrt(1 + 4 * turn**2))
        ahead = new + (turn - 1) / later * (new - shares)
        if np.abs(new - shares).max() < 1e-7:
            return new
        shares, turn = new, later
    return shares


def _projected(values: Array) -> Array:
    """The nearest point whose entries are at least 0 and sum to 1."""
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    last = int(np.nonzero(falling > excess)[0][-1])
    return np.maximum(values - excess[last], 0.0)


def logit_weights(
    logits: Array, labels: NDArray[np.int64], costs: Sequence[float], weight: Array
) -> Array:
    """Weights of candidates in a sum of logits: at least 0, of highest likelihood.

    Parameters
    ----------
    logits : array, shape (candidates, rows, classes)
        Of rows that they have not learned from.
    labels : array, shape (rows,)
        Class numbers.
    costs : sequence of float
        Nats that a whole weight must gain.
    weight : array, shape (rows,)
        Of the rows.

    Returns
    -------
    array, shape (candidates,)
        Their sum is near 1 but not tied to it: it sets how sure the pool is.
    """
    own = np.take_along_axis(logits, labels[None, :, None], 2)[..., 0]
    prices = np.array(costs)

    def loss(w: Array) -> tuple[float, Array]:
        pooled = np.tensordot(w, logits, 1)
        norm = logsumexp(pooled, axis=1, keepdims=True)
        probs = np.exp(pooled - norm) * weight[:, None]
        value = -weight @ (w @ own - norm[:, 0]) + prices @ w
        slope = -(own @ weight) + np.tensordot(logits, probs, 2) + prices
        excess = w.sum() - 1.0
        return float(value + tie_price(w.sum())), slope + _TIED * excess

    start = np.full(len(costs), 1.0 / len(costs))
    bounds = [(0.0, 5.0)] * len(costs)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.where(found.x < _LEAST, 0.0, found.x)


def tie_price(total: float) -> float:
    """Nats that weights of this sum cost: few rows do not say how sure to be.

    Parameters
    ----------
    total : float
        The sum of weights in a sum of logits.

    Returns
    -------
    float
        0 at a sum of 1.
    """
    return float(0.5 * _TIED * (total - 1.0) ** 2)
