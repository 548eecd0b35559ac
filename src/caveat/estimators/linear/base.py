"""What the linear estimators are told, and how that becomes posteriors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from caveat.estimators.linear.settings import fit_with, make_design, variance_prior
from caveat.maxent.linear import Features, LinearPosterior
from caveat.maxent.linear.arrays import Array


class SparseInput(BaseEstimator):  # type: ignore[misc]
    """An estimator that takes sparse matrices as they are."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LinearSettings(SparseInput):
    """The parameters that :class:`BayesianDropoutRegression` describes."""

    def __init__(
        self,
        drop_rate: Any = 0.5,
        prior_precision: float = 1.0,
        *,
        fit_intercept: bool = True,
        drop_to: str = "zero",
        groups: Any = None,
        noise: str = "bernoulli",
        variance_prior: tuple[float, float] | None = None,
        solver: str = "auto",
    ) -> None:
        self.drop_rate = drop_rate
        self.prior_precision = prior_precision
        self.fit_intercept = fit_intercept
        self.drop_to = drop_to
        self.groups = groups
        self.noise = noise
        self.variance_prior = variance_prior
        self.solver = solver

    def _posteriors(
        self, features: Features, responses: Sequence[Array]
    ) -> list[LinearPosterior]:
        """Of each response; all share one design and its factorisation."""
        design = make_design(
            features, self, drop_rate=self.drop_rate, precision=self.prior_precision
        )
        prior = variance_prior(self.variance_prior)
        return [fit_with(design, y, solver=self.solver, prior=prior) for y in responses]


def generator_of(random_state: Any) -> np.random.Generator:
    """NumPy's generator for whatever scikit-learn takes as a ``random_state``."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    seed = check_random_state(random_state).randint(2**31, size=4)
    return np.random.default_rng(seed)
