"""The exact posterior of the Bayesian dropout linear model (paper 002 eq. 14).

With Lambda = A + R X'X R (Bernoulli: R = 1 - f), mu = Lambda^-1 R X'y and
s = y'y - mu'Lambda mu, the paper's eq. 14 with its missing factors put back is

    w | v, y ~ N(mu, v Lambda^-1),      v | y ~ InvGamma(a_n, b_n)
    a_n = a0 + n/2,  b_n = b0 + s/2              (Jeffreys: a0 = b0 = 0)

so that w | y is Student-t with 2 a_n degrees of freedom. An intercept with a flat
prior takes one off n.
"""

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import scipy.stats

from caveat._summary import Summarised, TextSummary
from caveat.errors import CaveatWarning, ParameterError
from caveat.maxent.linear.arrays import Array, Matrix
from caveat.maxent.linear.design import Design
from caveat.maxent.linear.krylov import solve as krylov_solve
from caveat.maxent.linear.rows import ShiftedRows


class VariancePrior(NamedTuple):
    """Inverse-gamma prior of the noise variance; (0, 0) is Jeffreys' 1/v.

    Attributes
    ----------
    shape, rate : float, default 0
        a0 and b0, at least 0.
    """

    shape: float = 0.0
    rate: float = 0.0


JEFFREYS = VariancePrior()


class PosteriorSample(NamedTuple):
    """Draws of weights (draws, p), intercepts (draws,) and variances (draws,)."""

    weights: Array
    intercept: Array
    variance: Array


@final
@dataclass(frozen=True, eq=False)
class LinearPosterior(Summarised):
    """Posterior of weights and noise variance; made by :func:`fit_posterior`.

    Attributes
    ----------
    design : Design
        What was fitted.
    prior : VariancePrior
        (a0, b0).
    level : float
        Mean of the response, if there is an intercept, else 0.
    mean : array, shape (p,)
        mu, the location of the weights w (ledger E41).
    white_mean : array, shape (p,)
        The same in whitened coordinates.
    residual : array, shape (n,)
        alpha = y - level - r o x'mu.
    """

    design: Design
    prior: VariancePrior
    level: float
    mean: Array
    white_mean: Array
    residual: Array

    def summary(self) -> TextSummary:
        size = np.abs(self.effective_weights)
        most = np.argsort(-size, kind="stable")[:5]
        shown = ", ".join(f"{self.effective_weights[k]:+.3g} ({k})" for k in most)
        rows, p = len(self.residual), len(self.mean)
        return TextSummary(
            f"LinearPosterior: {p} weights from {rows} rows",
            {
                "largest weights (feature)": shown,
                "intercept": f"{self.intercept:.4g}",
                "noise scale": f"{self.noise_scale:.4g}",
                "degrees of freedom": f"{self.df:.4g}",
            },
        )

    @property
    def effective_weights(self) -> Array:
        """r o mu, the weights of the weight-averaged prediction."""
        return self.design.noise.mean * self.mean

    @property
    def intercept(self) -> float:
        """Location of the prediction for a row of zeros, averaged over noise."""
        if not self.design.intercept.fitted:
            return 0.0
        return self.level - float(self.design.features.means @ self.effective_weights)

    @property
    def misfit(self) -> float:
        """s: squared residuals plus the penalty, without cancellation (E42)."""
        # E42: s = y'y - mu'Lambda mu = y'alpha = alpha'alpha + mu'A mu
        penalty = self.design.whitening.penalty
        return float(
            self.residual @ self.residual
            + self.white_mean @ (penalty * self.white_mean)
        )

    @property
    def shape(self) -> float:
        """a_n of the noise variance (ledger E41)."""
        # E41: a_n = a0 + n/2, with an intercept a0 + (n - 1)/2
        return self.prior.shape + 0.5 * (len(self.residual) - self.design.n_level)

    @property
    def rate(self) -> float:
        """b_n of the noise variance (ledger E41)."""
        return self.prior.rate + 0.5 * self.misfit

    @property
    def df(self) -> float:
        """Degrees of freedom of all Student-t distributions, 2 a_n."""
        return 2.0 * self.shape

    @property
    def noise_scale(self) -> float:
        """sqrt(b_n / a_n), the scale of the noise."""
        return float(np.sqrt(self.rate / self.shape))

    @property
    def noise_variance(self) -> float:
        """Posterior mean of the noise variance, b_n / (a_n - 1)."""
        if self.shape <= 1.0:
            _warn_about_moments(self.df)
            return float("inf")
        return self.rate / (self.shape - 1.0)

    def variance_distribution(self) -> Any:
        """Inverse-gamma posterior of the noise variance, a frozen scipy law."""
        return scipy.stats.invgamma(self.shape, scale=self.rate)

    def weight_distribution(self, features: Any = None) -> Any:
        """Student-t posterior of some or all weights, a frozen scipy law.

        Parameters
        ----------
        features : array of int, optional
            Which weights; all by default, which needs a p by p matrix.

        Returns
        -------
        scipy.stats.multivariate_t
        """
        chosen = self._chosen(features)
        scale = self.rate / self.shape * self._inverse(chosen)
        return scipy.stats.multivariate_t(self.mean[chosen], scale, self.df)

    def covariance(self, features: Any = None) -> Array:
        """Posterior covariance of some or all weights, b_n / (a_n - 1) Lambda^-1.

        Parameters
        ----------
        features : array of int, optional
            Which weights; all by default, which needs a p by p matrix.

        Returns
        -------
        array, shape (k, k)
            Without a variance (2 degrees of freedom or fewer) infinite or NaN; NaN
            also for features that neither data nor prior hold.
        """
        chosen = self._chosen(features)
        if self.df <= 2.0:
            _warn_about_moments(self.df)
            value = np.inf if self.df > 1.0 else np.nan
            return np.where(np.eye(len(chosen), dtype=bool), value, np.nan)
        # E41: Cov w = b_n / (a_n - 1) Lambda^-1
        return self.noise_variance * self._inverse(chosen)

    def locations(self, directions: ShiftedRows) -> Array:
        """level + u'mu of whitened directions u."""
        return self.level + directions.times(self.white_mean)

    def leverages(self, directions: ShiftedRows) -> Array:
        """u'Lambda^-1 u, plus 1/n with an intercept: variance of u'w + b over v."""
        return self.design.level_variance + self.design.factor.quadratic(directions)

    def predict(self, matrix: Matrix, factor: Array) -> tuple[Array, Array]:
        """Location and leverage of the Student-t predictive (ledger E44).

        Parameters
        ----------
        matrix : array or CSR matrix, shape (rows, p)
            The rows x.
        factor : array, shape (p,)
            What multiplies the features: the mean of the noise, or 1.

        Returns
        -------
        location, leverage : array, shape (rows,)
            The squared scale is b_n / a_n (1 + leverage).
        """
        directions = self.design.directions(matrix, factor)
        # E44: t_{2 a_n}(u'mu, (b_n/a_n)(1 + u'Lambda^-1 u)), u = (1 - f) x or x
        return self.locations(directions), self.leverages(directions)

    def sample(self, n_draws: int, rng: np.random.Generator) -> PosteriorSample:
        """Draws of weights, intercept and noise variance (ledger E47).

        Parameters
        ----------
        n_draws : int
            How many.
        rng : numpy.random.Generator
            Where the randomness comes from.

        Returns
        -------
        PosteriorSample
            The intercept is that of undropped features: the level less, for features
            that drop to their mean, mean'w, else r o mean'w.
        """
        return self._sampled(n_draws, rng, np.ones(self.design.features.n_features))

    def effective_sample(
        self, n_draws: int, rng: np.random.Generator
    ) -> PosteriorSample:
        """Draws of the weight-averaged function, x -> weights'x + intercept.

        Parameters
        ----------
        n_draws, rng
            As for :meth:`sample`; the same generator gives the same draws.

        Returns
        -------
        PosteriorSample
            The weights are those of :meth:`sample` times the mean of the noise, and
            the intercept is that which goes with them.
        """
        return self._sampled(n_draws, rng, self.design.noise.mean)

    def _sampled(
        self, n_draws: int, rng: np.random.Generator, factor: Array
    ) -> PosteriorSample:
        design = self.design
        variance = self.rate / rng.gamma(self.shape, size=n_draws)
        spread = np.sqrt(variance)
        # E47: w = mu + sqrt(v) e, e ~ N(0, Lambda^-1); b = level + sqrt(v/n) e' - c'w
        white = design.factor.deviates(n_draws, rng)
        weights = self.mean + (design.whitening.weights(white) * spread).T
        level = self.level + spread * np.sqrt(
            design.level_variance
        ) * rng.standard_normal(n_draws)
        shift = design.shift(factor)
        taken = 0.0 if shift is None else weights @ shift
        return PosteriorSample(factor * weights, level - taken, variance)

    def _chosen(self, features: Any) -> np.ndarray:
        everything = np.arange(len(self.mean))
        return everything if features is None else np.atleast_1d(everything[features])

    def _inverse(self, chosen: np.ndarray) -> Array:
        """Rows and columns ``chosen`` of Lambda^-1."""
        whitening = self.design.whitening
        unit = np.zeros((len(chosen), len(self.mean)))
        unit[np.arange(len(chosen)), chosen] = 1.0
        white = np.asarray(whitening.directions(unit, np.ones(len(self.mean))))
        inverse = white @ self.design.factor.apply_inverse(white.T)
        inert = whitening.inert[chosen]
        inverse[inert], inverse[:, inert] = np.nan, np.nan
        return 0.5 * (inverse + inverse.T)


def fit_posterior(
    design: Design,
    y: Array,
    *,
    prior: VariancePrior = JEFFREYS,
    solver: str = "exact",
    tol: float = 1e-10,
    start: Array | None = None,
) -> LinearPosterior:
    """The posterior of a design for a response (ledger E41).

    Parameters
    ----------
    design : Design
        Data, noise, prior of the weights, intercept.
    y : array, shape (n,)
        The response.
    prior : VariancePrior
        Of the noise variance; Jeffreys by default.
    solver : {"exact", "primal", "dual", "krylov"}
        How the mean is found: by Cholesky in the smaller or a given form, or by
        conjugate gradients, which leaves the factorisation until it is needed.
    tol : float
        Relative residual for "krylov".
    start : array, shape (n,), optional
        A guess of the residuals for "krylov".

    Returns
    -------
    LinearPosterior

    Examples
    --------
    >>> import numpy as np
    >>> from caveat.maxent.linear import Design, Features, fit_posterior, make_noise
    >>> x = np.array([[1, 0.5], [-0.4, 1.2], [0.8, -1], [0.3, 0.9]])
    >>> design = Design(Features(x), make_noise(0.4, 2), prior_precision=0.5)
    >>> posterior = fit_posterior(design, np.array([1.2, 0.1, 0.4, 0.9]))
    >>> posterior.mean.round(6), round(posterior.misfit, 6)
    (array([0.677269, 0.308595]), 1.49964)
    """
    _enough_rows(design, len(y), prior)
    level = _level(y) if design.intercept.fitted else 0.0
    centred = y - level
    if solver == "krylov":
        white, residual, _ = krylov_solve(design.rows, centred, tol=tol, start=start)
    else:
        factor = design.factor if solver == "exact" else getattr(design, solver)
        white, residual = factor.solve(centred)
    mean = design.whitening.weights(white)
    return LinearPosterior(design, prior, level, mean, white, residual)


def _level(y: Array) -> float:
    """The mean; of a constant response that constant, which rounding may miss."""
    return float(y[0]) if np.ptp(y) == 0.0 else float(y.mean())


def _enough_rows(design: Design, n_rows: int, prior: VariancePrior) -> None:
    if prior.shape == 0.0 and n_rows <= design.n_level:
        raise ParameterError(
            f"An intercept takes one row, so that with n_samples={n_rows} nothing is "
            f"left to tell the noise variance by. Pass at least 2 rows, or "
            f"fit_intercept=False, or variance_prior=(shape, rate)."
        )


def _warn_about_moments(df: float) -> None:
    warnings.warn(
        f"With {df:g} degrees of freedom a Student-t has no variance (above 2 it has). "
        f"Add observations, or give variance_prior a shape above 0.",
        CaveatWarning,
        stacklevel=3,
    )
