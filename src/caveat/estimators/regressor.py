"""DropoutRegressor: regression with error bars, in scikit-learn's manner."""

from typing import Any, Self, final

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from caveat import _validation as validation
from caveat.errors import InputTypeError, ShapeError
from caveat.estimators.answers import Ask, RegressionAnswers
from caveat.estimators.base import (
    Array,
    DropoutEstimator,
    counted_rows,
    regression_rows,
)
from caveat.estimators.noise_head import NoiseHead
from caveat.estimators.presets import AUTO, preset_of
from caveat.estimators.prior import Prior
from caveat.estimators.seeds import seed_of
from caveat.estimators.tables.budget import budget_of
from caveat.estimators.tables.copies import without_copies
from caveat.estimators.tables.records import say
from caveat.estimators.tables.regression import TableRegression, fit_regression
from caveat.estimators.trainer import Trainer
from caveat.noise import Noise
from caveat.predictive import GaussianPredictive
from caveat.theory import log_density_shift
from caveat.training.ensembles import Draws, scaling_of
from caveat.training.objectives import (
    GaussianWithPrecision,
    Likelihood,
    SquaredError,
)
from caveat.training.schedules import Schedule
from caveat.training.streams import mask_seed

_STATE = (
    "n_outputs_",
    "_target_names",
    "_is_vector",
    "precision_",
    "precision_scale_",
    "validation_log_likelihood_",
)


@final
class DropoutRegressor(RegressionAnswers, DropoutEstimator):
    """Regression by networks with dropout, whose predictions have error bars.

    Networks are trained with dropout and predict with it: the average of many draws,
    their spread, and the noise of the observations make the predictive distribution
    (paper 001). Inputs and targets are standardised inside (a constant column is only
    centred); all answers are in the units of y.

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
        "relu", "tanh", "cos", "sin", "leaky_relu", "elu", "sigmoid", "softplus",
        "silu", "gelu" or "identity".
    noise : {"bernoulli", "gaussian"} or a family, "bernoulli" in a recipe
        Units are dropped, or multiplied by Gaussian factors of the same variance. A
        family of noise, such as ``caveat.noise.Concrete()``, brings its own rate: it
        acts before every weight layer whose drop rate here is not 0, and networks are
        trained one by one on the bound.
    drop_rate : float, 0.05 in a recipe
        Of the hidden units, in [0, 1). With 0 (and ``input_drop_rate=0``) networks
        have a single draw each: an ordinary ensemble.
    input_drop_rate : float, 0 in a recipe
        Of the features.
    precision : float, array, NoiseHead or None, default None
        What is known of tau, the inverse variance of the observation noise in the
        units of 1/y². None: nothing; it is the value at which folds of the training
        rows are most probable (or, if ``prior`` has both of its values, the one they
        stand for). A number, or one per output: it is known. ``NoiseHead()``: it is a
        function of x, to be learned.
    prior : Prior, optional
        Of the weights, N(0, 1/l²) in standard units: ``Prior(lengthscale=1e-2)``, the
        default, or ``Prior(weight_decay=...)``. Precision, length-scale and decay are
        tied by eq. 12 of paper 001, so one of the two goes with a precision; both,
        without one.
    n_members : int, 1 in a recipe
        Networks, which differ in their seeds; their draws are pooled.
    schedule : Schedule, optional
        How long and how fast they learn, and whether they stop early; by default
        ``Schedule()``: 400 epochs, batches of 32, a rate that falls from 1e-2 to 0.
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
    networks_ : tuple of nn.Sequential
        In standard units, in evaluation mode; for ``caveat.MCDropout`` and the like.
        For reading: predictions do not follow if they are changed.
    scaling_ : Scaling
        Those units; of a recipe only: networks of a pool have units of their own.
    precision_ : float, array of shape (outputs,), or None
        tau in the units of 1/y²; None with a noise head, or of a pool.
    precision_scale_ : float or None
        Factor on the learned precisions; None without a noise head.
    lengthscale_ : float
        l of the prior; None of a pool, as are or are empty those that follow.
    weight_decays_ : tuple of float
        Of each weight layer, as used.
    bias_weight_decay_ : float
        Of the biases.
    validation_log_likelihood_ : float or None
        Mean log density of the rows of the folds, in the units of y, if the precision
        was found by folds. An estimate for new rows, but for the choice of one number.
    loss_curve_ : list of float
        Mean loss of training rows with the noise off, in units of the networks, after
        equal parts of their steps; of a pool, of its heaviest networks. Empty for
        families of noise.
    n_steps_ : tuple of int
        Steps after which the weights of each network were taken.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : array of str
        Their names, if X had any.
    n_outputs_ : int
        Columns of y.

    Examples
    --------
    >>> import numpy as np
    >>> from caveat.estimators import DropoutRegressor
    >>> X = np.linspace(-2, 2, 100)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=100)
    >>> model = DropoutRegressor(drop_rate=0.01, random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.5], [4.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.0)) < 0.15 and std[1] > std[0])
    True
    """

    n_outputs_: int
    precision_: float | Array | None
    precision_scale_: float | None
    validation_log_likelihood_: float | None

    def __init__(  # noqa: PLR0913
        self,
        hidden: tuple[int, ...] | None = None,
        *,
        preset: str | None = AUTO,
        activation: str | None = None,
        noise: str | Noise | None = None,
        drop_rate: float | None = None,
        input_drop_rate: float | None = None,
        precision: Any = None,
        prior: Prior | None = None,
        n_members: int | None = None,
        schedule: Schedule | None = None,
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
        self.precision = precision

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose, train and calibrate: by a preset, or by the recipe given.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            At least two rows, without NaN.
        y : array, shape (rows,) or (rows, outputs)
            Targets.
        sample_weight : array, shape (rows,), optional
            How much each row counts; only their ratios matter, and a row of weight 0
            is as if it were absent.

        Returns
        -------
        DropoutRegressor
            This object.
        """
        self._target_names = names_of(y)
        x, targets = regression_rows(self, X, y, least=2)
        self._is_vector = targets.ndim == 1
        targets = targets.reshape(len(x), -1)
        self.n_outputs_ = targets.shape[1]
        x, targets, weight = counted_rows(sample_weight, x, targets, least=2)
        seed, preset = self._fresh_seed(), preset_of(self)
        if preset is not None:
            return self._choose(preset, x, targets, weight, seed)
        trainer = self._trainer(self.precision, seed, weight)
        standard = self._choose_precision(trainer, x, targets)
        self._keep(trainer.fit(x, targets, precision=standard), seed)
        return self

    def _choose(
        self, preset: str, x: Array, y: Array, weight: Array, seed: int
    ) -> Self:
        """A pool of candidates, by the log-likelihood of rows held out."""
        self._check_draws()
        x, y, weight = without_copies(x, y, weight)
        found = fit_regression(
            x,
            y,
            budget=budget_of(preset, *x.shape),
            weight=weight,
            seed=seed,
            progress=self.progress,
        )
        self.precision_ = self.precision_scale_ = None
        self.validation_log_likelihood_ = found.log_likelihood
        self._keep_table(found.table, found.candidates, seed)
        say(f"DropoutRegressor: {self.chosen_}", self.progress)
        return self

    def _table_draws(self, x: Array, n_draws: int, seed: int) -> Draws:
        assert isinstance(self._table, TableRegression)
        means, precisions = self._table.draws(x, n_draws=n_draws, seed=seed)
        return Draws(torch.from_numpy(means), torch.from_numpy(precisions))

    def predictive(self, X: Any) -> GaussianPredictive:
        """The predictive distribution, with all its draws.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            The rows to predict.

        Returns
        -------
        GaussianPredictive
            In the units of y, with as many axes as y had. A draw is a function: one
            set of masks for all rows, so the answer for a row does not depend on the
            others.
        """
        return self._gaussian(self._matrix(X))

    def sample_y(self, X: Any, n_draws: int = 1, random_state: Any = 0) -> Array:
        """New observations: a draw of a network at all rows, and noise.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            Where to observe.
        n_draws : int, default 1
            How many at each row.
        random_state : int, RandomState, Generator or None, default 0
            Of masks and noise.

        Returns
        -------
        array, shape (draws, rows) or (draws, rows, outputs)
        """
        x, number = self._matrix(X), validation.positive_int("n_draws", n_draws)
        seed = seed_of(random_state)
        found = self._draws(x, n_draws=self._each(number), seed=mask_seed(1, seed))
        turns = self._turns(number, len(found.means), seed)
        means = found.means[turns]
        generator = torch.Generator().manual_seed(mask_seed(2, seed))
        noise = torch.randn(means.shape, generator=generator, dtype=means.dtype)
        tau = self._precision_of(found)
        own = tau[turns] if tau.ndim == means.ndim else tau
        return (means + noise * own.rsqrt()).numpy()

    def log_likelihood(self, X: Any, y: Any) -> float:
        # Some rows at a time, so that few draws are held at once.
        x = self._matrix(X)
        observed = np.asarray(y, dtype=np.float64)
        expected = (len(x),) if self._is_vector else (len(x), self.n_outputs_)
        if observed.shape != expected:
            raise ShapeError(f"y must have the shape {expected}. Got {observed.shape}.")
        done, total = 0, 0.0
        for rows in self._parts(x):
            own = torch.from_numpy(observed[done : done + len(rows)])
            total += float(self._gaussian(rows).log_prob(own).sum())
            done += len(rows)
        return total / len(x)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that ``predict`` gives.

        Parameters
        ----------
        input_features : object
            Not used; scikit-learn's manner.

        Returns
        -------
        array of str
            Those of y where it was a Series or data frame; else y, or y0, y1, ...
        """
        check_is_fitted(self, "networks_")
        several = [f"y{place}" for place in range(self.n_outputs_)]
        own = several if self.n_outputs_ > 1 else ["y"]
        return np.asarray(self._target_names or own, dtype=object)

    # ------------------------------------------------------------ private

    def _objective(self) -> Likelihood:
        has_head = isinstance(self.precision, NoiseHead)
        return GaussianWithPrecision() if has_head else SquaredError()

    def _n_targets(self) -> int:
        return self.n_outputs_

    def _choose_precision(self, trainer: Trainer, x: Array, y: Array) -> float:
        """tau in standard units for the decay; keeps what is to be reported."""
        y_std = scaling_of(trainer.spec, x, y).y_std
        self.validation_log_likelihood_ = self.precision_scale_ = None
        if isinstance(self.precision, NoiseHead):
            calibrate = self.precision.calibrate
            scale = self._validated(trainer, x, y, y_std) if calibrate else 1.0
            self.precision_, self.precision_scale_ = None, scale
            return 1.0
        if self.precision is not None:
            tau = _given(self.precision, len(y_std))
            scale = float(np.mean(tau * y_std**2))
        else:
            scale = self._found(trainer, x, y, y_std)
            tau = scale / y_std**2  # E18
        self.precision_ = tau if self.n_outputs_ > 1 else float(tau[0])
        return scale

    def _found(self, trainer: Trainer, x: Array, y: Array, y_std: Array) -> float:
        """tau in standard units: by the prior, if that says what it is, or by folds."""
        if trainer.prior.gives_precision:
            return trainer.precision(len(x))
        return self._validated(trainer, x, y, y_std)

    def _validated(self, trainer: Trainer, x: Array, y: Array, y_std: Array) -> float:
        """tau in standard units, or the factor on learned precisions, by folds."""
        best = trainer.validate(x, y)
        shift = log_density_shift(torch.from_numpy(y_std))  # E19
        self.validation_log_likelihood_ = best.log_likelihood + shift
        return best.scale

    def _asked(self, X: Any, ask: Ask) -> list[Array]:
        return self._by_parts(self._matrix(X), lambda rows: ask(self._gaussian(rows)))

    def _gaussian(self, x: Array) -> GaussianPredictive:
        found = self._draws(x, n_draws=self.n_draws)
        return GaussianPredictive.from_draws(
            found.means,
            precision=self._precision_of(found),
            design=self._design(),
        )

    def _draws(self, x: Array, *, n_draws: int, seed: int = 0) -> Draws:
        """With as many axes as y had."""
        found = super()._draws(x, n_draws=n_draws, seed=seed)
        if not self._is_vector:
            return found
        precisions = found.precisions
        return Draws(
            found.means.squeeze(-1),
            None if precisions is None else precisions.squeeze(-1),
        )

    def _precision_of(self, draws: Draws) -> Tensor:
        if draws.precisions is not None:
            factor = self.precision_scale_
            return draws.precisions if factor is None else draws.precisions * factor
        tau = torch.as_tensor(self.precision_, dtype=torch.float64)
        return tau if self._is_vector else tau.expand(self.n_outputs_)

    def _own_state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _STATE}

    def _restore(self, state: dict[str, Any]) -> None:
        for name in _STATE:
            setattr(self, name, state[name])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


def names_of(y: Any) -> tuple[str, ...]:
    """Names that a Series or a data frame brings; none of others.

    Parameters
    ----------
    y : object
        What the user gave.

    Returns
    -------
    tuple of str
    """
    if hasattr(y, "columns"):
        return tuple(map(str, y.columns))
    name = getattr(y, "name", None)
    return (name,) if isinstance(name, str) else ()


def _given(precision: Any, n_outputs: int) -> Array:
    """One tau per output."""
    if isinstance(precision, str) or precision is NoiseHead:
        raise InputTypeError(
            "precision must be None (found by folds), a number, one number per output, "
            f"or NoiseHead() (learned as a function of x). Got {precision!r}."
        )
    tau = validation.precision(precision).to(torch.float64).numpy()
    if tau.ndim > 1 or tau.size not in (1, n_outputs):
        raise ShapeError(
            f"precision must be a number or one per output, {n_outputs}. "
            f"Got the shape {tau.shape}."
        )
    return np.array(np.broadcast_to(tau.reshape(-1), n_outputs))
