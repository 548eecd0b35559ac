"""What every regression with an exact dropout posterior can do once it is fitted."""

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from caveat import _validation
from caveat.estimators.answers import RegressionAnswers
from caveat.estimators.linear.base import SparseInput, generator_of
from caveat.estimators.linear.settings import new_matrix
from caveat.maxent.linear import LinearPosterior, log_evidence, log_normalizer
from caveat.maxent.linear.arrays import Array
from caveat.maxent.linear.dropped import dropped_components
from caveat.maxent.linear.posterior import PosteriorSample
from caveat.predictive import StudentMixturePredictive, StudentPredictive


class DropoutLinearModel(RegressionAnswers, SparseInput):
    """Predictions from the ``posterior_`` that a subclass fits."""

    posterior_: LinearPosterior

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Weight-averaged prediction, X @ effective_coef_ + intercept_.

        Parameters
        ----------
        X : array or sparse matrix, shape (rows, features)
            The rows to predict.
        return_std : bool, default False
            Also give the standard deviation of a new observation.

        Returns
        -------
        mean : array, shape (rows,)
        std : array, shape (rows,)
            Only with ``return_std``.
        """
        check_is_fitted(self, "posterior_")
        if return_std:
            predictive = self.predictive(X)
            return predictive.location.numpy(), predictive.std.numpy()
        matrix, posterior = new_matrix(self, X), self.posterior_
        return np.asarray(matrix @ posterior.effective_weights) + posterior.intercept

    def predictive(self, X: Any) -> StudentPredictive:
        """Student-t predictive of the weight-averaged model (ledger E44).

        Each feature is multiplied by the mean of its noise, 1 - f: what the training
        data saw on average, and so the right point prediction.

        Parameters
        ----------
        X : array or sparse matrix, shape (rows, features)
            The rows to predict.

        Returns
        -------
        StudentPredictive
        """
        check_is_fitted(self, "posterior_")
        return self._student(X, self.posterior_.design.noise.mean)

    def undropped_predictive(self, X: Any) -> StudentPredictive:
        """Student-t predictive with all features kept, at full weight (ledger E44).

        Its location is larger than what was trained by 1 / (1 - f).

        Parameters
        ----------
        X : array or sparse matrix, shape (rows, features)
            The rows to predict.

        Returns
        -------
        StudentPredictive
        """
        check_is_fitted(self, "posterior_")
        return self._student(X, np.ones(self.posterior_.design.features.n_features))

    def dropped_predictive(
        self, X: Any, *, n_draws: int = 1000, random_state: Any = None
    ) -> StudentMixturePredictive:
        """Predictive of an observation whose features are dropped too (ledger E51).

        A mixture over masks of Student-t: exact if no row has more than ten non-zero
        features that can be dropped, else of masks drawn and shared by all rows.

        Parameters
        ----------
        X : array or sparse matrix, shape (rows, features)
            The rows to predict.
        n_draws : int, default 1000
            Masks to draw, if they are not enumerated.
        random_state : int, RandomState or None
            Of the masks.

        Returns
        -------
        StudentMixturePredictive
            Its ``n_draws`` is 0 if it is exact.
        """
        check_is_fitted(self, "posterior_")
        found = dropped_components(
            self.posterior_,
            new_matrix(self, X),
            n_draws=_validation.positive_int("n_draws", n_draws),
            rng=generator_of(random_state),
        )
        return StudentMixturePredictive.of(
            torch.from_numpy(found.locations),
            self._scales(found.leverages),
            torch.from_numpy(found.log_weights),
            noise_scale=self.posterior_.noise_scale,
            df=self.posterior_.df,
            n_draws=found.n_draws,
        )

    def sample_posterior(
        self, n_draws: int = 1, random_state: Any = None
    ) -> PosteriorSample:
        """Draws of weights, intercept and noise variance (ledger E47).

        Parameters
        ----------
        n_draws : int, default 1
            How many.
        random_state : int, RandomState or None
            Where the randomness comes from.

        Returns
        -------
        weights : array, shape (draws, features)
        intercept : array, shape (draws,)
        variance : array, shape (draws,)
        """
        check_is_fitted(self, "posterior_")
        number = _validation.positive_int("n_draws", n_draws)
        return self.posterior_.sample(number, generator_of(random_state))

    def log_normalizer(self) -> float:
        """log Z of paper 002, which is no evidence if anything is dropped (E45)."""
        check_is_fitted(self, "posterior_")
        return log_normalizer(self.posterior_)

    def log_evidence(self) -> float:
        """Normalised log evidence of the equivalent ordinary model (ledger E46)."""
        check_is_fitted(self, "posterior_")
        return log_evidence(self.posterior_)

    def _keep(self, posterior: LinearPosterior) -> None:
        self.posterior_ = posterior
        self.coef_ = posterior.mean
        self.effective_coef_ = posterior.effective_weights
        self.intercept_ = posterior.intercept

    def _student(self, X: Any, factor: Array) -> StudentPredictive:
        location, leverage = self.posterior_.predict(new_matrix(self, X), factor)
        return StudentPredictive.of(
            torch.from_numpy(location),
            self._scales(leverage),
            noise_scale=self.posterior_.noise_scale,
            df=self.posterior_.df,
        )

    def _scales(self, leverages: Array) -> Tensor:
        scales = self.posterior_.noise_scale * np.sqrt(1.0 + leverages)
        return torch.from_numpy(scales)
