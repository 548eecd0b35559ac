"""Classification by dropout regression on labels of plus and minus one."""

from typing import Any, Self, final

import numpy as np
import torch
from scipy.special import stdtr
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from caveat import _validation
from caveat.errors import ParameterError
from caveat.estimators.checking import validate_data
from caveat.estimators.labels import label_numbers
from caveat.estimators.linear.base import LinearSettings, generator_of
from caveat.estimators.linear.settings import new_matrix
from caveat.maxent.linear import Features, LinearPosterior
from caveat.maxent.linear.arrays import Array
from caveat.predictive import CategoricalPredictive


@final
class BayesianDropoutClassifier(ClassifierMixin, LinearSettings):  # type: ignore[misc]
    """Linear classifier with the exact dropout posterior of paper 002.

    As in the paper's experiments, labels become +1 and -1 and are regressed on; the
    probability of a class is that of a positive response under the Student-t
    predictive (ledger E52). More than two classes are taken one against the rest and
    their probabilities normalised. All share one factorisation.

    Parameters
    ----------
    drop_rate, prior_precision, fit_intercept, drop_to, groups, noise
        As for :class:`BayesianDropoutRegression`.
    variance_prior, solver
        As for :class:`BayesianDropoutRegression`.

    Attributes
    ----------
    classes_ : array, shape (classes,)
        The labels.
    coef_ : array, shape (1 or classes, features)
        mu, the posterior mean weights of each regression.
    effective_coef_ : array, shape (1 or classes, features)
        (1 - f) mu, the weights of the response that is predicted.
    intercept_ : array, shape (1 or classes,)
        Of the response that is predicted.
    posteriors_ : list of LinearPosterior
        Of each regression; one for two classes.
    n_features_in_ : int
        Number of features seen in ``fit``.

    Examples
    --------
    >>> from caveat.estimators import BayesianDropoutClassifier
    >>> X = [[1.0, 0.5], [-0.4, 1.2], [0.8, -1.0], [-0.9, 0.3]]
    >>> model = BayesianDropoutClassifier(0.2).fit(X, ["up", "down", "up", "down"])
    >>> model.predict([[0.9, 0.0]]).tolist()
    ['up']
    >>> model.predict_proba([[0.9, 0.0]]).round(2)
    array([[0.3, 0.7]])
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Find the posterior of each regression.

        Parameters
        ----------
        X : array or sparse matrix, shape (rows, features)
            Covariates.
        y : array, shape (rows,)
            Labels of two or more classes.

        Returns
        -------
        BayesianDropoutClassifier
            Itself.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ParameterError(
                f"y must hold at least two classes. Got one class, "
                f"{self.classes_.tolist()[0]!r}."
            )
        signs = _signs(numbers, len(self.classes_))
        self._keep(self._posteriors(Features(X), signs))
        return self

    def decision_function(self, X: Any) -> Array:
        """Predicted response in units of the noise: larger means more probable.

        Parameters
        ----------
        X : array or sparse matrix, shape (rows, features)
            The rows to predict.

        Returns
        -------
        array, shape (rows,) for two classes, else (rows, classes)
        """
        check_is_fitted(self, "posteriors_")
        matrix = new_matrix(self, X)
        response = np.asarray(matrix @ self.effective_coef_.T) + self.intercept_
        scores = response / [posterior.noise_scale for posterior in self.posteriors_]
        return scores[:, 0] if len(self.posteriors_) == 1 else scores

    def predict(self, X: Any) -> Any:
        """The most probable class.

        Parameters
        ----------
        X : array or sparse matrix, shape (rows, features)
            The rows to predict.

        Returns
        -------
        array, shape (rows,)
        """
        scores = self.decision_function(X)
        best = scores.argmax(1) if scores.ndim == 2 else (scores > 0.0).astype(int)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class (ledger E52).

        Parameters
        ----------
        X : array or sparse matrix, shape (rows, features)
            The rows to predict.

        Returns
        -------
        array, shape (rows, classes)
        """
        check_is_fitted(self, "posteriors_")
        matrix, first = new_matrix(self, X), self.posteriors_[0]
        leverage = first.leverages(
            first.design.directions(matrix, first.design.noise.mean)
        )
        scores = self.decision_function(X).reshape(len(leverage), -1)
        # E52: Pr(y > 0) = F_{2a}(location / scale), normalised over the classes
        positive = stdtr(first.df, scores / np.sqrt(1.0 + leverage)[:, None])
        if positive.shape[1] == 1:
            return np.hstack([1.0 - positive, positive])
        return positive / positive.sum(1, keepdims=True)

    def log_likelihood(self, X: Any, y: Any) -> float:
        """Mean log probability of observed labels, by :meth:`predict_proba`.

        Parameters
        ----------
        X : array or sparse matrix, shape (rows, features)
            Rows.
        y : array, shape (rows,)
            Their labels.

        Returns
        -------
        float
        """
        probs = self.predict_proba(X)
        numbers = label_numbers(self.classes_, y, len(probs))
        with np.errstate(divide="ignore"):
            return float(np.log(probs[np.arange(len(probs)), numbers]).mean())

    def predictive(
        self, X: Any, *, n_draws: int = 100, random_state: Any = None
    ) -> CategoricalPredictive:
        """The predictive distribution of the label, from draws of the posterior.

        A draw is a function, the same weights and noise variance for all rows; under
        it a class has the probability of a positive response, Phi(response / sd of the
        noise), normalised over the classes. So there is mutual information between the
        label and the weights, which the probabilities alone do not show.

        Parameters
        ----------
        X : array or sparse matrix, shape (rows, features)
            The rows to predict.
        n_draws : int, default 100
            Draws of weights and noise variance.
        random_state : int, RandomState, Generator or None
            Of the draws.

        Returns
        -------
        CategoricalPredictive
            Classes in the order of ``classes_``. For two classes ``probs`` tends to
            :meth:`predict_proba`, which is exact; for more, the draws are normalised
            one by one and their average differs a little from it.
        """
        check_is_fitted(self, "posteriors_")
        matrix, rng = new_matrix(self, X), generator_of(random_state)
        number = _validation.positive_int("n_draws", n_draws)
        responses = []
        for posterior in self.posteriors_:
            drawn = posterior.effective_sample(number, rng)
            response = np.asarray(matrix @ drawn.weights.T) + drawn.intercept
            responses.append((response / np.sqrt(drawn.variance)).T)
        scores = torch.from_numpy(np.stack(responses, -1))  # (draws, rows, responses)
        if len(responses) == 1:
            scores = torch.cat([-scores, scores], -1)
        # E163: log p_tc = log Phi(x'w_tc / sqrt(v_tc)), normalised by the softmax
        return CategoricalPredictive.from_logits(torch.special.log_ndtr(scores))

    def _keep(self, posteriors: list[LinearPosterior]) -> None:
        self.posteriors_ = posteriors
        self.coef_ = np.stack([p.mean for p in posteriors])
        self.effective_coef_ = np.stack([p.effective_weights for p in posteriors])
        self.intercept_ = np.array([p.intercept for p in posteriors])


def _signs(numbers: np.ndarray, n_classes: int) -> list[Array]:
    """Responses of plus and minus one: one for two classes, else one for each."""
    positive = [1] if n_classes == 2 else range(n_classes)
    return [np.where(numbers == k, 1.0, -1.0) for k in positive]
