"""Choosing drop rate and prior precision by the data."""

from collections.abc import Callable, Sequence
from typing import Any, Self, final

import numpy as np

from caveat.errors import ParameterError
from caveat.estimators.linear.predictor import DropoutLinearModel
from caveat.estimators.linear.settings import (
    make_design,
    training_data,
    variance_prior,
    warned_without_noise,
)
from caveat.maxent.linear import (
    LinearPosterior,
    exact_leave_one_out,
    fast_leave_one_out,
    fit_posterior,
    generalised_cross_validation,
    log_evidence,
)

CRITERIA: dict[str, Callable[[LinearPosterior], float]] = {
    "loo": lambda p: -fast_leave_one_out(p).mean_squared_error,
    "loo_log_density": lambda p: float(fast_leave_one_out(p).log_densities.mean()),
    "exact_loo": lambda p: -exact_leave_one_out(p).mean_squared_error,
    "exact_loo_log_density": lambda p: float(
        exact_leave_one_out(p).log_densities.mean()
    ),
    "gcv": lambda p: -generalised_cross_validation(p),
    "evidence": log_evidence,
}
DROP_RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
PRIOR_PRECISIONS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


@final
class BayesianDropoutRegressionCV(DropoutLinearModel):
    """Bayesian dropout regression that chooses its drop rate and prior precision.

    Every pair is fitted exactly and scored without a second look at the data; the best
    pair is kept. All that ``BayesianDropoutRegression`` answers can be asked of it.

    Parameters
    ----------
    drop_rates : sequence of float
        Rates f in [0, 1) to try.
    prior_precisions : sequence of float
        Values of lambda0 >= 0 to try.
    criterion : str, default "loo"
        What is best:

        - "loo": squared error of leave-one-out predictions, with the sums of squares
          that dropout brings in held fixed; one factorisation per pair, and off by a
          share of order 1/n.
        - "loo_log_density": the same, by predictive log density.
        - "exact_loo", "exact_loo_log_density": by n refits per pair.
        - "gcv": generalised cross-validation.
        - "evidence": normalised evidence (never paper 002's Z, which falls with f by
          construction).
    fit_intercept, drop_to, groups, noise, variance_prior
        As for :class:`BayesianDropoutRegression`.

    Attributes
    ----------
    drop_rate_, prior_precision_ : float
        The best pair.
    scores_ : array, shape (drop_rates, prior_precisions)
        Score of each pair; higher is better, so errors are negative.
    best_score_ : float
        The highest.
    coef_, effective_coef_, intercept_, posterior_, n_features_in_
        As for :class:`BayesianDropoutRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> from caveat.estimators import BayesianDropoutRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=40)
    >>> model = BayesianDropoutRegressionCV(drop_rates=(0.0, 0.5)).fit(X, y)
    >>> model.drop_rate_, model.scores_.shape
    (0.0, (2, 7))
    """

    def __init__(
        self,
        drop_rates: Sequence[float] = DROP_RATES,
        prior_precisions: Sequence[float] = PRIOR_PRECISIONS,
        *,
        criterion: str = "loo",
        fit_intercept: bool = True,
        drop_to: str = "zero",
        groups: Any = None,
        noise: str = "bernoulli",
        variance_prior: tuple[float, float] | None = None,
    ) -> None:
        self.drop_rates = drop_rates
        self.prior_precisions = prior_precisions
        self.criterion = criterion
        self.fit_intercept = fit_intercept
        self.drop_to = drop_to
        self.groups = groups
        self.noise = noise
        self.variance_prior = variance_prior

    def fit(self, X: Any, y: Any) -> Self:
        """Score every pair and keep the posterior of the best.

        Parameters
        ----------
        X : array or sparse matrix, shape (rows, features)
            Covariates.
        y : array, shape (rows,)
            Responses.

        Returns
        -------
        BayesianDropoutRegressionCV
            Itself.
        """
        features, response = training_data(self, X, y, ensure_min_samples=3)
        prior, score = variance_prior(self.variance_prior), self._criterion()

        def posterior(rate: float, precision: float) -> LinearPosterior:
            design = make_design(features, self, drop_rate=rate, precision=precision)
            return fit_posterior(design, response, prior=prior)

        pairs = self._pairs()
        scores = np.array([score(posterior(*pair)) for pair in pairs])
        best = int(np.nanargmax(scores))
        self.scores_ = scores.reshape(len(self.drop_rates), -1)
        self.best_score_ = float(scores[best])
        self.drop_rate_, self.prior_precision_ = pairs[best]
        self._keep(warned_without_noise(posterior(*pairs[best])))
        return self

    def _pairs(self) -> list[tuple[float, float]]:
        pairs = [(f, p) for f in self.drop_rates for p in self.prior_precisions]
        if not pairs:
            raise ParameterError(
                "drop_rates and prior_precisions must each hold at least one value. "
                f"Got {self.drop_rates!r} and {self.prior_precisions!r}."
            )
        return pairs

    def _criterion(self) -> Callable[[LinearPosterior], float]:
        if self.criterion not in CRITERIA:
            raise ParameterError(
                f"criterion must be one of {', '.join(map(repr, CRITERIA))}. "
                f"Got {self.criterion!r}."
            )
        return CRITERIA[self.criterion]
