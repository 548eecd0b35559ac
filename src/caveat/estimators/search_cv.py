"""DropoutSearchCV: the settings of a DropoutRegressor, chosen by validation."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, final

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from caveat import _validation as validation
from caveat.errors import InputTypeError, ParameterError
from caveat.estimators.answers import Ask, RegressionAnswers
from caveat.estimators.base import Array, regression_rows
from caveat.estimators.noise_head import NoiseHead
from caveat.estimators.prior import Prior, checked_prior
from caveat.estimators.regressor import DropoutRegressor
from caveat.estimators.seeds import seed_of
from caveat.evaluation.precision import BestScale
from caveat.predictive import GaussianPredictive
from caveat.theory import log_density_shift
from caveat.training.bayesian import Choices, LogUniform, bayesian_search
from caveat.training.scaling import Scaling
from caveat.training.schedules import Schedule
from caveat.training.search import Choice, Running, Task, grid_search
from caveat.training.spec import NetworkSpec
from caveat.training.stores import FileStore

DROP_RATES = (0.005, 0.01, 0.05, 0.1)
_VARIED = ("drop_rate", "input_drop_rate", "hidden", "lengthscale", "epochs")


@final
class DropoutSearchCV(MetaEstimatorMixin, RegressionAnswers, BaseEstimator):  # type: ignore[misc]
    """Chooses rates, depth and length-scale of a DropoutRegressor by cross-validation.

    Candidates are compared by the log density of held-out rows, each at its own best
    precision, which follows from its validation errors by a search in one dimension. A
    grid is trained at once; with ``n_trials`` Bayesian optimisation asks for candidates
    a few at a time. Folds go by size: 5 for up to 1500 rows, 3 below 7000, else the
    last fifth, of rows in random order.

    Parameters
    ----------
    drop_rate : sequence of float, default (0.005, 0.01, 0.05, 0.1)
        Rates of the hidden units to compare.
    input_drop_rate : sequence of float, optional
        Rates of the features to compare; by default that of ``estimator`` alone, as
        for those that follow.
    hidden : sequence of tuple of int, optional
        Widths of the hidden layers to compare, such as ``[(50,), (50, 50)]``.
    lengthscale : sequence of float, optional
        Length-scales of the prior to compare.
    estimator : DropoutRegressor, optional
        All other settings. Its ``random_state`` does not count.
    space : mapping of str to LogUniform, Choices or sequence, optional
        Instead of the lists: what Bayesian optimisation varies among "drop_rate",
        "input_drop_rate", "hidden", "lengthscale" and "epochs"; see
        ``caveat.training.bayesian``. Needs the extra ``search``.
    n_trials : int, default 30
        Candidates that Bayesian optimisation tries.
    at_once : int, default 4
        Candidates that it asks for and trains together.
    cache : str or Path, optional
        File of scores. A fit that was interrupted or killed goes on from there, if X,
        y, the settings and ``random_state`` are the same.
    n_workers : int or None, default 1
        With 1 candidates are trained in this process, on all its cores. Else each is a
        job for one of so many processes; None is one per core. Scores are the same.
    engine : {"local", "ray"}
        Processes of this machine, or Ray (``pip install 'caveat[scale]'``).
    address : str, optional
        Of a Ray cluster; by default one is started on this machine.
    random_state : int, RandomState, Generator or None
        Of the order of rows, the networks and the candidates asked for.

    Attributes
    ----------
    best_params_ : dict
        The settings chosen, by name.
    best_score_ : float
        Mean log density of the held-out rows under these, in the units of y.
    best_index_ : int
        Their place in ``cv_results_``.
    best_estimator_ : DropoutRegressor
        Fitted to all rows with these and the precision found.
    cv_results_ : dict of arrays
        "params", one ``"param_…"`` for each name, "mean_test_score",
        "rank_test_score", and "precision_scale": the best precision in standard
        units, or with a noise head the best factor on the learned ones.
        "rank_test_score", and "precision_scale": the best precision in standard units,
        or with a noise head the best factor on the learned ones.
    n_features_in_ : int
        Features seen in ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from caveat.estimators import DropoutRegressor, DropoutSearchCV, Schedule
    >>> X = np.linspace(-2, 2, 100)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=100)
    >>> found = DropoutSearchCV(
    ...     drop_rate=[0.01, 0.5],
    ...     estimator=DropoutRegressor(schedule=Schedule(epochs=100)),
    ...     random_state=0,
    ... ).fit(X, y)
    >>> found.best_params_
    {'drop_rate': 0.01}
    >>> mean, std = found.predict([[0.5]], return_std=True)
    """

    best_estimator_: DropoutRegressor

    def __init__(  # noqa: PLR0913
        self,
        drop_rate: Sequence[float] = DROP_RATES,
        *,
        input_drop_rate: Sequence[float] | None = None,
        hidden: Sequence[tuple[int, ...]] | None = None,
        lengthscale: Sequence[float] | None = None,
        estimator: DropoutRegressor | None = None,
        space: Mapping[str, Any] | None = None,
        n_trials: int = 30,
        at_once: int = 4,
        cache: Any = None,
        n_workers: int | None = 1,
        engine: str = "local",
        address: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.drop_rate = drop_rate
        self.input_drop_rate = input_drop_rate
        self.hidden = hidden
        self.lengthscale = lengthscale
        self.estimator = estimator
        self.space = space
        self.n_trials = n_trials
        self.at_once = at_once
        self.cache = cache
        self.n_workers = n_workers
        self.engine = engine
        self.address = address
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Compare the candidates, and fit the best to all rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            At least five rows, without NaN.
        y : array, shape (rows,) or (rows, outputs)
            Targets.

        Returns
        -------
        DropoutSearchCV
            This object.
        """
        x, targets = regression_rows(self, X, y, least=5)
        columns = targets.reshape(len(x), -1)
        scaling, seed = Scaling.of(x, columns), self._seed()
        template = self._template()
        choice = self._choose(template, _task(x, columns, scaling, seed), seed)
        self._keep(choice, scaling)
        best = _with(template, self.best_params_).set_params(random_state=seed)
        if best.precision is None:
            tau = choice.score.scale / scaling.y_std**2  # E18
            best.set_params(precision=tau if len(tau) > 1 else float(tau[0]))
        self.best_estimator_ = best.fit(X, y)
        return self

    def predictive(self, X: Any) -> GaussianPredictive:
        """As :meth:`DropoutRegressor.predictive`, by the best estimator.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            The rows to predict.

        Returns
        -------
        GaussianPredictive
            In the units of y.
        """
        return self._best().predictive(X)

    def log_likelihood(self, X: Any, y: Any) -> float:
        return self._best().log_likelihood(X, y)

    # ------------------------------------------------------------ private

    def _asked(self, X: Any, ask: Ask) -> list[Array]:
        return self._best()._asked(X, ask)

    def _best(self) -> DropoutRegressor:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def _seed(self) -> int:
        if self.cache is not None and self.random_state is None:
            raise ParameterError(
                "cache needs a random_state, as other seeds have other scores. Got "
                "None; pass an int."
            )
        return seed_of(self.random_state)

    def _template(self) -> DropoutRegressor:
        """The settings that are not compared, if a search can use them."""
        if self.estimator is None:
            return DropoutRegressor()
        if not isinstance(self.estimator, DropoutRegressor):
            raise InputTypeError(
                "estimator must be a DropoutRegressor. "
                f"Got {type(self.estimator).__name__}."
            )
        _check_template(self.estimator)
        return clone(self.estimator)

    def _choose(self, template: DropoutRegressor, task: Task, seed: int) -> Choice:
        base = template._spec()
        if template.prior is not None:
            base = base.vary(lengthscale=template.prior.lengthscale)
        store = None if self.cache is None else FileStore(self.cache)
        if self.space is None:
            return grid_search(
                [task],
                self._grid(base),
                seed=seed,
                store=store,
                **self._running(template.progress),
            )[0]
        return bayesian_search(
            [task],
            _checked_space(self.space),
            base,
            seed=seed,
            n_trials=self.n_trials,
            at_once=self.at_once,
            store=store,
            **self._running(template.progress),
        )[0]

    def _running(self, progress: bool | None) -> Running:
        if self.n_workers is not None:
            validation.positive_int("n_workers", self.n_workers)
        return {
            "progress": progress,
            "n_workers": self.n_workers,
            "engine": self.engine,
            "address": self.address,
        }

    def _lists(self) -> dict[str, list[Any]]:
        """What a grid is made of."""
        given = {name: getattr(self, name, None) for name in _VARIED}
        return {
            name: _values(name, values)
            for name, values in given.items()
            if values is not None
        }

    def _grid(self, base: NetworkSpec) -> list[NetworkSpec]:
        lists = self._lists()
        return [
            base.vary(**dict(zip(lists, values, strict=True)))
            for values in itertools.product(*lists.values())
        ]

    def _keep(self, choice: Choice, scaling: Scaling) -> None:
        """What was seen, as scikit-learn's searches tell it."""
        names = self._lists() if self.space is None else self.space
        params = [{n: _value(spec, n) for n in names} for spec in choice.scores]
        scores = list(choice.scores.values())
        values = np.array([_in_units_of_y(score, scaling) for score in scores])
        self.cv_results_ = {
            "params": params,
            **{f"param_{n}": _objects(p[n] for p in params) for n in names},
            "mean_test_score": values,
            "rank_test_score": rankdata(-values, method="min").astype(np.int32),
            "precision_scale": np.array([score.scale for score in scores]),
        }
        self.best_index_ = list(choice.scores).index(choice.spec)
        self.best_params_ = params[self.best_index_]
        self.best_score_ = float(values[self.best_index_])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = (self.estimator or DropoutRegressor()).__sklearn_tags__()
        tags.input_tags, tags.target_tags = own.input_tags, own.target_tags
        return tags


def _check_template(estimator: DropoutRegressor) -> None:
    """Refuse what a search cannot use."""
    precision, prior = estimator.precision, checked_prior(estimator.prior, None)
    is_head = isinstance(precision, NoiseHead) and precision.calibrate
    if precision is not None and not is_head:
        raise ParameterError(
            "precision of the estimator must be None or NoiseHead(), as a search finds "
            f"it. Got {precision!r}."
        )
    if prior.weight_decay is not None:
        raise ParameterError(
            "prior of the estimator must be a length-scale, as a search needs it. "
            f"Got {prior}."
        )
    schedule = estimator.schedule
    if schedule is not None and schedule.early_stopping is not None:
        raise ParameterError(
            "schedule of the estimator must not stop early, as a search compares whole "
            f"trainings. Got {schedule}."
        )


def _with(template: DropoutRegressor, chosen: Mapping[str, Any]) -> DropoutRegressor:
    """The estimator with the values chosen, those of its groups too."""
    own = dict(chosen)
    if "lengthscale" in own:
        own["prior"] = Prior(lengthscale=own.pop("lengthscale"))
    if "epochs" in own:
        schedule = template.schedule or Schedule()
        own["schedule"] = replace(schedule, epochs=own.pop("epochs"))
    return template.set_params(**own)


def _value(spec: NetworkSpec, name: str) -> Any:
    return spec.schedule.epochs if name == "epochs" else getattr(spec, name)


def _task(x: Array, y: Array, scaling: Scaling, seed: int) -> Task:
    """Rows in random order, targets in standard units: one precision serves all."""
    order = np.random.default_rng([seed, 0]).permutation(len(x))
    standard = (y - scaling.y_mean) / scaling.y_std
    return Task("rows", x[order], standard[order])


def _in_units_of_y(score: BestScale, scaling: Scaling) -> float:
    return score.log_likelihood + log_density_shift(scaling.y_std.tolist())  # E19


def _values(name: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputTypeError(
            f"{name} must be a list of values to compare. Got {values!r}; for one "
            "value pass a list of one."
        )
    found = list(values)
    if not found:
        raise ParameterError(f"{name} must hold at least one value. Got none.")
    if name == "hidden" and not all(isinstance(v, tuple | list) for v in found):
        raise InputTypeError(
            "hidden must be a list of tuples to compare, such as [(50,), (50, 50)]. "
            f"Got {values!r}."
        )
    return [tuple(v) for v in found] if name == "hidden" else found


def _checked_space(space: Any) -> dict[str, LogUniform | Choices]:
    for name in space:
        if name not in _VARIED:
            raise ParameterError(
                f"space may hold {', '.join(map(repr, _VARIED))}. Got {name!r}."
            )
    return {
        name: values
        if isinstance(values, LogUniform | Choices)
        else Choices(*_values(name, values))
        for name, values in space.items()
    }


def _objects(values: Iterable[Any]) -> Any:
    """An array of whatever they are, tuples too."""
    items = list(values)
    found = np.empty(len(items), dtype=object)
    found[:] = items
    return found
