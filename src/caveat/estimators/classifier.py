"""DropoutClassifier: class probabilities with their doubt, in scikit-learn's manner."""

from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from caveat import _validation as validation
from caveat.errors import ParameterError
from caveat.estimators.base import (
    Array,
    DropoutEstimator,
    counted_rows,
    dense,
    row_weights,
)
from caveat.estimators.checking import validate_data
from caveat.estimators.labels import label_numbers
from caveat.estimators.presets import AUTO, preset_of
from caveat.estimators.prior import Prior
from caveat.estimators.seeds import seed_of
from caveat.estimators.tables.budget import budget_of
from caveat.estimators.tables.classification import (
    TableClassification,
    fit_classification,
)
from caveat.estimators.tables.copies import without_copies
from caveat.estimators.tables.records import say
from caveat.noise import Noise
from caveat.predictive import CategoricalPredictive
from caveat.training.ensembles import Draws
from caveat.training.objectives import SoftmaxCrossEntropy
from caveat.training.schedules import Schedule
from caveat.training.streams import mask_seed


@final
class DropoutClassifier(ClassifierMixin, DropoutEstimator):  # type: ignore[misc]
    """Classification by networks with dropout, which says how sure it is.

    Networks are trained with dropout and predict with it: probabilities are averages
    over many draws, and ``predictive`` tells doubt that more data would remove (mutual
    information) from doubt that it would not. Inputs are standardised inside.

    Without arguments of the networks it chooses for itself: a constant, exact linear
    models and several networks are pooled and calibrated on rows held out
    (``docs/tables.md``). With any of them it is that recipe, the others at the values
    named below.

    Parameters
    ----------
    hidden : tuple of int, (50,) in a recipe
        Widths of the hidden layers; empty for a linear model.
    preset : {"auto", "fast", "best"} or None, default "auto"
        How much the choice may cost. "auto" gives way to arguments of the networks
        (those down to ``schedule``, but for this one), which the other two refuse. None
        is the recipe even without any.
    activation : str, "relu" in a recipe
        As for :class:`DropoutRegressor`.
    noise : {"bernoulli", "gaussian"} or a family, "bernoulli" in a recipe
        Units are dropped, or multiplied by Gaussian factors of the same variance. A
        family of noise, such as ``caveat.noise.Concrete()``, brings its own rate: it
        acts before every weight layer whose drop rate here is not 0, and networks are
        trained one by one on the bound.
    drop_rate : float, 0.05 in a recipe
        Of the hidden units, in [0, 1).
    input_drop_rate : float, 0 in a recipe
        Of the features.
    prior : Prior, optional
        Of the weights: ``Prior(lengthscale=1e-2)``, the default, or
        ``Prior(weight_decay=...)``. The precision of a softmax likelihood is 1.
    n_members : int, 1 in a recipe
        Networks, which differ in their seeds; their draws are pooled.
    schedule : Schedule, optional
        How long and how fast they learn, and whether they stop early; by default
        ``Schedule()``: 400 epochs, batches of 32, a rate that falls from 1e-2 to 0.
    class_weight : dict, "balanced" or None, default None
        Weights of classes, as in scikit-learn; probabilities follow them.
    n_draws : int, default 400
        Draws of each network of a recipe; of a pool, all in all.
    random_state : int, RandomState, Generator or None
        Of weights, order, masks and draws. A fitted estimator always repeats itself.
    progress : bool or None, default False
        Show a progress bar, and say what was chosen; None does so on a terminal.

    Attributes
    ----------
    candidates_ : tuple of Candidate
        All that were tried: name, held-out log-likelihood and weight, the heaviest
        first. Empty for a recipe, as is ``chosen_``.
    chosen_ : str
        The same in one line.
    classes_ : array, shape (classes,)
        The labels, in order.
    networks_ : tuple of nn.Sequential
        From standard units to logits, in evaluation mode; as for
        :class:`DropoutRegressor`.
    scaling_ : Scaling
        The standard units of X.
    lengthscale_, weight_decays_, bias_weight_decay_, n_steps_, loss_curve_
        As for :class:`DropoutRegressor`.
    validation_log_likelihood_ : float or None
        Mean log probability of held-out labels under the pool; None of a recipe.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : array of str
        Their names, if X had any.

    Examples
    --------
    >>> import numpy as np
    >>> from caveat.estimators import DropoutClassifier, Schedule
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> model = DropoutClassifier(schedule=Schedule(epochs=50), random_state=0)
    >>> model = model.fit(X, y)
    >>> model.predict([[2.0, 0.0], [-2.0, 0.0]])
    array(['right', 'left'], dtype='<U5')
    >>> model.predict_proba([[2.0, 0.0]]).round(1)
    array([[0., 1.]])
    """

    classes_: NDArray[Any]
    validation_log_likelihood_: float | None = None

    def __init__(  # noqa: PLR0913
        self,
        hidden: tuple[int, ...] | None = None,
        *,
        preset: str | None = AUTO,
        activation: str | None = None,
        noise: str | Noise | None = None,
        drop_rate: float | None = None,
        input_drop_rate: float | None = None,
        prior: Prior | None = None,
        n_members: int | None = None,
        schedule: Schedule | None = None,
        class_weight: Any = None,
        n_draws: int = 400,
        random_state: Any = None,
        progress: bool | None = False,
    ) -> None:
        super().__init__(
            hidden,
            preset=preset,
            activation=activation,
            noise=noise,
            drop_rate=drop_rate,
            input_drop_rate=input_drop_rate,
            prior=prior,
            n_members=n_members,
            schedule=schedule,
            n_draws=n_draws,
            random_state=random_state,
            progress=progress,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose, train and calibrate: by a preset, or by the recipe given.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            Without NaN.
        y : array, shape (rows,)
            Labels of at least two classes: numbers, texts or bools.
        sample_weight : array, shape (rows,), optional
            How much each row counts, beside its class; only their ratios matter, and a
            row of weight 0 is as if it were absent: so is a class of such rows alone.

        Returns
        -------
        DropoutClassifier
            This object.
        """
        matrix, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2
        )
        check_classification_targets(labels)
        x, labels = dense(matrix), column_or_1d(labels, warn=True)
        x, labels, weight = counted_rows(sample_weight, x, labels, least=2)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ParameterError(
                f"y must hold labels of at least two classes. Got only one class, "
                f"{self.classes_.tolist()[0]!r}."
            )
        weight = self._weights(weight, x, labels)
        seed, preset = self._fresh_seed(), preset_of(self)
        if preset is not None:
            return self._choose(preset, x, numbers, weight, seed)
        targets = numbers.reshape(-1, 1).astype(np.float64)
        trainer = self._trainer(1.0, seed, weight)
        self._keep(trainer.fit(x, targets, precision=1.0), seed)
        return self

    def _weights(self, weight: Array, x: Array, labels: NDArray[Any]) -> Array:
        """Of rows, by themselves and by their class; mean 1."""
        if self.class_weight is not None:
            weight = weight * compute_sample_weight(self.class_weight, labels)
        return row_weights(weight, x)

    def _choose(
        self,
        preset: str,
        x: Array,
        numbers: NDArray[np.int64],
        weight: Array,
        seed: int,
    ) -> Self:
        """A pool of candidates, by the log-likelihood of labels held out."""
        self._check_draws()
        x, numbers, weight = without_copies(x, numbers, weight)
        found = fit_classification(
            x,
            numbers,
            n_classes=len(self.classes_),
            budget=budget_of(preset, *x.shape, classes=True),
            weight=weight,
            seed=seed,
            progress=self.progress,
        )
        self.validation_log_likelihood_ = found.log_likelihood
        self._keep_table(found.table, found.candidates, seed)
        say(f"DropoutClassifier: {self.chosen_}", self.progress)
        return self

    def _table_draws(self, x: Array, n_draws: int, seed: int) -> Draws:
        assert isinstance(self._table, TableClassification)
        logits = self._table.draws(x, n_draws=n_draws, seed=seed)
        return Draws(torch.from_numpy(logits), None)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            The rows to predict.

        Returns
        -------
        array, shape (rows,)
        """
        probs = self.predict_proba(X)
        return self.classes_[probs.argmax(1)]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, averaged over draws.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            The rows to predict.

        Returns
        -------
        array, shape (rows, classes)
            In the order of ``classes_``.
        """
        (probs,) = self._by_parts(
            self._matrix(X), lambda rows: (self._categorical(rows).probs,)
        )
        return probs

    def predictive(self, X: Any) -> CategoricalPredictive:
        """The predictive distribution, with all its draws.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            The rows to predict.

        Returns
        -------
        CategoricalPredictive
            Classes as numbers, in the order of ``classes_``; with entropy, mutual
            information and variation ratio of each row.
        """
        return self._categorical(self._matrix(X))

    def sample_y(self, X: Any, n_draws: int = 1, random_state: Any = 0) -> NDArray[Any]:
        """Labels as they may be observed: a draw of a network, and a label from it.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            Where to observe.
        n_draws : int, default 1
            How many at each row.
        random_state : int, RandomState, Generator or None, default 0
            Of masks and labels.

        Returns
        -------
        array, shape (draws, rows)
        """
        x, number = self._matrix(X), validation.positive_int("n_draws", n_draws)
        seed = seed_of(random_state)
        each = self._each(number)
        logits = self._draws(x, n_draws=each, seed=mask_seed(1, seed)).means
        probs = logits[self._turns(number, len(logits), seed)].softmax(-1)
        generator = torch.Generator().manual_seed(mask_seed(2, seed))
        drawn = torch.multinomial(probs.flatten(0, 1), 1, generator=generator)
        return self.classes_[drawn.reshape(number, len(x)).numpy()]

    def log_likelihood(self, X: Any, y: Any) -> float:
        """Mean log probability of observed labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            Rows.
        y : array, shape (rows,)
            What was observed there.

        Returns
        -------
        float
        """
        x = self._matrix(X)
        numbers = self._numbers(y, len(x))
        (log_probs,) = self._by_parts(
            x, lambda rows: (self._categorical(rows).log_probs,)
        )
        return float(log_probs[np.arange(len(x)), numbers].mean())

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that ``predict_proba`` gives: the classes.

        Parameters
        ----------
        input_features : object
            Not used; scikit-learn's manner.

        Returns
        -------
        array of str
        """
        check_is_fitted(self, "networks_")
        return np.asarray([str(label) for label in self.classes_], dtype=object)

    # ------------------------------------------------------------ private

    def _objective(self) -> SoftmaxCrossEntropy:
        return SoftmaxCrossEntropy(len(self.classes_))

    def _n_targets(self) -> int:
        return 1

    def _categorical(self, x: Array) -> CategoricalPredictive:
        logits = self._draws(x, n_draws=self.n_draws).means
        return CategoricalPredictive.from_logits(
            logits, seed=self._seed, design=self._design()
        )

    def _numbers(self, y: Any, n_rows: int) -> NDArray[np.int64]:
        """The place of each label in ``classes_``."""
        return label_numbers(self.classes_, y, n_rows)

    def _own_state(self) -> dict[str, Any]:
        return {
            "classes_": self.classes_,
            "validation_log_likelihood_": self.validation_log_likelihood_,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.classes_ = state["classes_"]
        self.validation_log_likelihood_ = state["validation_log_likelihood_"]
