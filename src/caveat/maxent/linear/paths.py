"""Posterior means for many settings on the same data."""

from collections.abc import Sequence

import numpy as np

from caveat.maxent.linear.arrays import Array
from caveat.maxent.linear.design import Design
from caveat.maxent.linear.features import Features
from caveat.maxent.linear.intercept import Intercept
from caveat.maxent.linear.krylov import solve, solve_shifted
from caveat.maxent.linear.noise import make_noise
from caveat.maxent.linear.rows import ShiftedRows
from caveat.maxent.linear.whitening import DiagonalWhitening

_POINTS = 4  # settings that a guess for the next one is made from
_WILD = 50.0  # sum of weights from which a guess is worth nothing
EXACT_UP_TO = 1000  # smaller side of the data up to which Cholesky is as fast


def mean_path(
    features: Features,
    y: Array,
    settings: Sequence[tuple[float, float]],
    *,
    intercept: Intercept,
    tol: float,
) -> Array:
    """Posterior means for pairs of drop rate and prior precision.

    Large problems are solved by conjugate gradients, each setting from a guess that
    continues those before it.

    Parameters
    ----------
    features : Features
        The covariates.
    y : array, shape (n,)
        The response.
    settings : sequence of (drop_rate, prior_precision)
        In an order in which neighbours are alike.
    intercept : Intercept
        Whether there is one.
    tol : float
        Relative residual where conjugate gradients are used.

    Returns
    -------
    array, shape (p, settings)
        A column mu per setting.
    """
    centred = y - y.mean() if intercept.fitted else y
    present = np.flatnonzero(features.squares)  # a column of zeros has the weight 0
    kept = Features(features.matrix[:, present])
    guesses = _Guesses()
    means = np.zeros((features.n_features, len(settings)), order="F")
    for column, (rate, precision) in enumerate(settings):
        noise = make_noise(rate, len(present))
        design = Design(kept, noise, precision, intercept)
        guess = guesses.at(rate, precision)
        white, residual = _solved(design, centred, guess, tol)
        guesses.add(rate, precision, residual)
        means[present, column] = design.whitening.weights(white)
    return means


def ratio_path(
    features: Features,
    y: Array,
    rates: Array,
    *,
    prior_ratio: float,
    intercept: Intercept,
    tol: float,
) -> Array:
    """Posterior means for many drop rates with lambda0 = ratio f (1 - f) (E50).

    Then A = f (1 - f) (ratio I + Lambda1), and the n by n matrix of rate f is
    I + ((1 - f)/f) S with one S for all rates, so one Krylov space serves them all.

    Parameters
    ----------
    features : Features
        The covariates.
    y : array, shape (n,)
        The response.
    rates : array, shape (k,)
        Drop rates f in (0, 1).
    prior_ratio : float
        lambda0 / (f (1 - f)).
    intercept : Intercept
        Whether there is one.
    tol : float
        Relative residual.

    Returns
    -------
    array, shape (p, k)
        A column mu per rate.
    """
    squares = intercept.noise_squares(features)
    whitening = DiagonalWhitening.of(prior_ratio + squares, np.zeros_like(squares))
    centre = intercept.centre(features)
    shift = None if centre is None else centre * whitening.inverse
    rows = ShiftedRows.less(
        whitening.directions(features.matrix, np.ones_like(squares)), shift
    )
    centred = y - y.mean() if intercept.fitted else y
    # E50: (I + ((1 - f)/f) S) alpha = y, mu = (1/f) (ratio I + Lambda1)^-1 X' alpha
    alphas = solve_shifted(rows, centred, (1.0 - rates) / rates, tol=tol)
    return whitening.weights(rows.transposed_times(alphas)) / rates


def _solved(
    design: Design, y: Array, guess: Array | None, tol: float
) -> tuple[Array, Array]:
    """Whitened mean and residuals, by what suits the size."""
    sides = (design.features.n_rows, design.features.n_features)
    if min(sides) <= EXACT_UP_TO or not design.whitening.is_proper:
        return design.factor.solve(y)
    return solve(design.rows, y, tol=tol, start=guess)[:2]


class _Guesses:
    """Residuals of the settings so far, continued to the next as a polynomial.

    The argument of the polynomial is the distance covered in the plane of
    (logit f, log lambda0).
    """

    def __init__(self) -> None:
        self._known: list[tuple[Array, Array]] = []

    def add(self, rate: float, precision: float, residual: Array) -> None:
        """Take in a solved setting."""
        self._known = [*self._known[1 - _POINTS :], (_place(rate, precision), residual)]

    def at(self, rate: float, precision: float) -> Array | None:
        """A guess for a setting, None for the first."""
        if not self._known:
            return None
        places = [place for place, _ in self._known] + [_place(rate, precision)]
        steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
        weights = _extrapolation(np.cumsum(steps[:-1], dtype=float), steps[-1])
        return sum(w * a for w, (_, a) in zip(weights, self._known, strict=True))


def _place(rate: float, precision: float) -> Array:
    tiny = np.finfo(np.float64).tiny
    return np.log([max(rate, tiny) / (1.0 - rate), max(precision, tiny)])


def _extrapolation(covered: Array, step: float) -> Array:
    """Lagrange weights of the known points for one ``step`` beyond the last."""
    known = np.append(0.0, covered)
    goal = known[-1] + step
    gaps = known[:, None] - known
    np.fill_diagonal(gaps, 1.0)
    last = np.append(np.zeros(len(known) - 1), 1.0)
    if not gaps.all():
        return last
    shares = (goal - known) / gaps  # shape: (point, factor)
    np.fill_diagonal(shares, 1.0)
    weights = shares.prod(1)
    return weights if np.abs(weights).sum() < _WILD else last
