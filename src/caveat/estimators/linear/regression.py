"""Linear regression with the exact dropout posterior of paper 002."""

from typing import Any, Self, final

from caveat.estimators.linear.base import LinearSettings
from caveat.estimators.linear.predictor import DropoutLinearModel
from caveat.estimators.linear.settings import training_data


@final
class BayesianDropoutRegression(DropoutLinearModel, LinearSettings):
    """Bayesian linear regression whose weights are robust to being dropped.

    The maximum-entropy posterior of paper 002 (eq. 14), in closed form: no sampling.
    It is one factorisation for small data, and for larger data conjugate gradients to
    a relative residual of 1e-10 (``solver``). Each weight is dropped with probability
    ``drop_rate``, which acts as a prior that grows with the size of its feature;
    ``drop_rate=0`` is ordinary Bayesian ridge regression. With ``prior_precision=0``
    predictions do not change when features are rescaled.

    Parameters
    ----------
    drop_rate : float or array, shape (features,), default 0.5
        f in [0, 1): the chance that a weight is dropped, one for all or one each.
    prior_precision : float, default 1.0
        lambda0; the prior is w | v ~ N(0, v / lambda0) with the noise variance v.
    fit_intercept : bool, default True
        Whether there is an intercept, with a flat prior and never dropped.
    drop_to : {"zero", "mean"}, default "zero"
        What a dropped feature becomes. "mean", which needs an intercept, is what
        centring X first amounts to; it is another model. With "zero" the penalty grows
        with the mean of a feature, so that one that is far from 0 and varies little (a
        year, a temperature in kelvin) is shrunk to nothing, intercept or not; a
        ``CaveatWarning`` names one.
    groups : array, shape (features,), optional
        Features with equal labels are dropped together.
    noise : {"bernoulli", "gaussian"}, default "bernoulli"
        Masks, or factors N(1, f / (1 - f)); with the prior precision divided by
        (1 - f)² the latter gives the same predictions.
    variance_prior : (float, float), optional
        Shape and rate of an inverse-gamma prior of v; Jeffreys' 1/v by default.
    solver : {"auto", "primal", "dual", "krylov"}, default "auto"
        How the mean is found. "krylov", conjugate gradients, uses products with X
        only; all other answers then wait for a factorisation of the smaller side, made
        when first needed. "auto" takes it if both sides of X are large.

    Attributes
    ----------
    coef_ : array, shape (features,)
        mu, the posterior mean of the weights w of undropped features (eq. 14).
    effective_coef_ : array, shape (features,)
        mu times the mean of the noise, (1 - f) mu: ``predict`` is
        ``X @ effective_coef_ + intercept_``.
    intercept_ : float
        Of ``predict``.
    posterior_ : LinearPosterior
        The posterior: ``covariance()``, ``weight_distribution()`` (Student-t),
        ``variance_distribution()`` (inverse-gamma), ``noise_variance``, ….
    n_features_in_ : int
        Number of features seen in ``fit``.

    Examples
    --------
    >>> from caveat.estimators import BayesianDropoutRegression
    >>> X = [[1, 0.5], [-0.4, 1.2], [0.8, -1], [0.3, 0.9]]
    >>> model = BayesianDropoutRegression(0.4, 0.5, fit_intercept=False)
    >>> model = model.fit(X, [1.2, 0.1, 0.4, 0.9])
    >>> model.coef_.round(6), model.effective_coef_.round(6)
    (array([0.677269, 0.308595]), array([0.406362, 0.185157]))
    >>> mean, std = model.predict([[0.7, -1.1]], return_std=True)
    >>> mean.round(6), std.round(6)
    (array([0.08078]), array([0.969502]))
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Find the posterior (ledger E41).

        Parameters
        ----------
        X : array or sparse matrix, shape (rows, features)
            Covariates; a sparse matrix stays sparse.
        y : array, shape (rows,)
            Responses.

        Returns
        -------
        BayesianDropoutRegression
            Itself.
        """
        features, response = training_data(self, X, y)
        self._keep(self._posteriors(features, [response])[0])
        return self
