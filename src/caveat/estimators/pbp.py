"""PBPRegressor: probabilistic backpropagation, in scikit-learn's manner."""

from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from caveat import _validation as validation
from caveat.errors import InputTypeError
from caveat.estimators.answers import RegressionAnswers
from caveat.estimators.base import dense
from caveat.estimators.checking import validate_data
from caveat.estimators.seeds import seed_of
from caveat.predictive import RegressionPredictive
from caveat.training.pbp.units import PBPFit, fit_pbp

Array = NDArray[np.float64]

_WIDTHS = """hidden must be a tuple of widths, as (50,), or empty for a linear model.
Got {hidden!r}."""


@final
class PBPRegressor(RegressionAnswers, BaseEstimator):  # type: ignore[misc]
    """Regression by a Bayesian network without dropout and without sampling.

    Every weight has a Gaussian of its own. A row is absorbed by matching the moments of
    the posterior, which follow from the derivatives of the log of its predictive
    density; the precisions of the noise and of the weights' prior have gamma
    distributions, and are learned by the same means. There is no rate, decay or
    precision to choose. It is what paper 001 compares with in its Table 1
    [HernandezLobato2015]_.

    Inputs and target are standardised inside (a constant column is only centred); all
    answers are in the units of y.

    Parameters
    ----------
    hidden : tuple of int, default (50,)
        Widths of the hidden layers, of rectified units; empty for a linear model.
    n_epochs : int, default 40
        Passes over the rows. As its authors do, each absorbs all rows anew, so more
        passes make the network surer of itself, not only better trained.
    random_state : int, RandomState, Generator or None
        Of the first means and of the order of the rows.
    progress : bool or None, default False
        Show a progress bar; None does so on a terminal.

    Attributes
    ----------
    fit_ : PBPFit
        Means and variances of all weights (``fit_.networks``), and the units.
    precision_ : float
        tau, the inverse of the mean noise variance, in the units of 1/y².
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : array of str
        Their names, if X had any.

    References
    ----------
    .. [HernandezLobato2015] J. M. Hernández-Lobato, R. P. Adams. Probabilistic
       backpropagation for scalable learning of Bayesian neural networks. ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from caveat.estimators import PBPRegressor
    >>> X = np.linspace(-2, 2, 60)[:, None]
    >>> y = np.abs(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> model = PBPRegressor((20,), random_state=0).fit(X, y)
    >>> mean, std = model.predict([[1.0], [6.0]], return_std=True)
    >>> bool(abs(mean[0] - 1.0) < 0.2 and std[1] > std[0])
    True
    """

    fit_: PBPFit
    precision_: float

    def __init__(
        self,
        hidden: tuple[int, ...] = (50,),
        *,
        n_epochs: int = 40,
        random_state: Any = None,
        progress: bool | None = False,
    ) -> None:
        self.hidden = hidden
        self.n_epochs = n_epochs
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any) -> Self:
        """Absorb the rows.

        Weights of rows are not accepted: a row is a factor of the posterior, and there
        is no such thing as half of its moments.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            At least two rows, without NaN.
        y : array, shape (rows,)
            Targets.

        Returns
        -------
        PBPRegressor
            This object; interrupted, it stays as it was.
        """
        hidden, n_epochs = (
            self._widths(),
            validation.positive_int("n_epochs", self.n_epochs),
        )
        matrix, targets = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            y_numeric=True,
            ensure_min_samples=2,
        )
        found = fit_pbp(
            [dense(matrix)],
            [np.asarray(targets, dtype=np.float64)],
            hidden=hidden,
            n_epochs=n_epochs,
            seeds=[seed_of(self.random_state)],
            progress=self.progress,
        )
        self.fit_ = found
        y_std = float(found.scalings[0].y_std[0])
        self.precision_ = float(1.0 / found.networks.noise.mean_variance[0] / y_std**2)
        return self

    def predictive(self, X: Any) -> RegressionPredictive:
        """The Gaussian of each row: mean, what is not known, and noise.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            The rows to predict.

        Returns
        -------
        RegressionPredictive
            In the units of y. Moments are propagated layer by layer, with units taken
            as independent: an approximation, without draws.
        """
        check_is_fitted(self, "fit_")
        rows = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, reset=False
        )
        return self.fit_.predictive(dense(rows))

    def _widths(self) -> tuple[int, ...]:
        given: Any = self.hidden  # what users pass is not what they should
        if isinstance(given, str) or not hasattr(given, "__iter__"):
            raise InputTypeError(_WIDTHS.format(hidden=given))
        return tuple(validation.positive_int("hidden", width) for width in given)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
