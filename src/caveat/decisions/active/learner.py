"""ActiveLearner: fit, ask for the labels that are worth most, and again."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from caveat import _validation as check
from caveat._random import stream_key
from caveat.decisions.acquisition import Acquisition, RandomChoice, as_acquisition
from caveat.decisions.active.curve import LearningCurve
from caveat.decisions.active.state import LearnerState, read_state, write_state
from caveat.decisions.rows import Rows, n_rows, take
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.predictive import Predictive

Evaluate = Callable[[Any], float]
Oracle = Callable[[Rows], Any]


class Estimator(Protocol):
    """What can be learned actively."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from scratch."""

    def predictive(self, X: Any) -> Predictive:
        """What is known of each row."""
        ...


@final
class ActiveLearner:
    """Learns from a pool of rows whose labels are asked for, a few at a time.

    Each step fits a copy of the estimator to the labels there are, asks it for a
    predictive of the others, and lets the acquisition choose. ``ask`` and ``tell`` are
    for labels that come from people; ``run`` is the whole loop.

    Parameters
    ----------
    estimator : object with fit(X, y) and predictive(X)
        ``fit`` starts from scratch, as scikit-learn's do. It is copied, not changed.
    X : array, Tensor, sparse matrix or data frame, shape (rows, …)
        The pool.
    acquisition : Acquisition, str or callable
        Such as ``BatchBALD()``, ``RandomChoice()``, or a score (``acquisition.bald``,
        ``"entropy"``), whose highest rows are then taken.
    n_per_step : int, default 10
        Labels to ask for at a time.
    n_candidates : int, optional
        Judge only so many rows of the pool, chosen at random anew in each step; all of
        them by default.
    evaluate : callable, optional
        From the fitted estimator to how good it is, higher is better; makes the
        learning curve.
    seed : int, default 0
        Of the candidates and of the acquisition; the estimator has its own.
    path : str or Path, optional
        A JSON file that is written after each step. If it is there, the learner goes
        on where that one stopped.

    Attributes
    ----------
    rows, labels : array
        Rows of the pool that have a label, in order, and the labels.
    curve : LearningCurve
        Of the fits so far.
    model : object
        The estimator as last fitted, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from caveat.decisions import ActiveLearner, acquisition
    >>> from caveat.estimators import DropoutRegressor, Schedule
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> y = np.sin(3 * X[:, 0])
    >>> learner = ActiveLearner(
    ...     DropoutRegressor(schedule=Schedule(epochs=30), random_state=0), X,
    ...     acquisition=acquisition.epistemic_variance, n_per_step=2,
    ... )
    >>> learner.tell([0, 25], y[[0, 25]])
    >>> learner.run(lambda rows: y[rows], n_labels=8)
    >>> len(learner.rows), len(set(learner.rows.tolist()))
    (8, 8)
    """

    def __init__(
        self,
        estimator: Estimator,
        X: Any,
        *,
        acquisition: Any,
        n_per_step: int = 10,
        n_candidates: int | None = None,
        evaluate: Evaluate | None = None,
        seed: int = 0,
        path: str | Path | None = None,
    ) -> None:
        self._estimator = _checked(estimator)
        self._pool, self._n_pool = X, n_rows("X", X)
        self._acquisition: Acquisition = as_acquisition(acquisition)
        self._n_per_step = check.positive_int("n_per_step", n_per_step)
        self._n_candidates = _candidates(n_candidates, self._n_per_step)
        self._evaluate = evaluate
        self._seed = check.draw_number(seed)
        self._path = None if path is None else Path(path)
        self._state = LearnerState()
        if self._path is not None:
            self._state = read_state(self._path, self._settings())
        self._fitted: tuple[int, Any] = (0, None)

    @property
    def rows(self) -> Rows:
        """Rows of the pool that have a label, in the order in which they came."""
        return np.array(self._state.rows, dtype=np.int64)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels of ``rows``."""
        return np.array(self._state.labels)

    @property
    def curve(self) -> LearningCurve:
        """How good the model was with how many labels."""
        return self._state.curve

    @property
    def model(self) -> Any:
        """The estimator as last fitted; None before the first fit."""
        return self._fitted[1]

    def tell(self, rows: Any, labels: Any) -> None:
        """Take labels, whether they were asked for or not.

        Parameters
        ----------
        rows : sequence of int
            Rows of the pool that have no label yet.
        labels : sequence
            One for each of them.
        """
        numbers, values = self._new_rows(rows), np.asarray(labels)
        if len(values) != len(numbers):
            raise ShapeError(
                f"labels must hold one label for each of {len(numbers)} rows. "
                f"Got {len(values)}."
            )
        self._keep(self._state.told(numbers, values))

    def ask(self) -> Rows:
        """Rows of the pool whose labels are worth most; fits, if there is news.

        Returns
        -------
        array of int, shape (n_per_step,)
            Fewer at the end of the pool. The same until they, or others, are told.
        """
        if not self._state.pending:
            self.fit()
            self._keep(self._state.asked(self._choose()))
        return np.array(self._state.pending, dtype=np.int64)

    def fit(self) -> Any:
        """Fit a copy of the estimator to all labels, and add to the curve.

        Returns
        -------
        object
            The fitted copy, which is also ``model``.
        """
        number = len(self._state.rows)
        if not number:
            raise ParameterError(
                "There are no labels to start from. Pass a few by tell(rows, labels)."
            )
        if self._fitted[0] != number:
            model = deepcopy(self._estimator)
            model.fit(take(self._pool, self.rows), self.labels)
            self._fitted = number, model
        if self._evaluate is not None and number not in self.curve.n_labels:
            self._keep(self._state.scored(float(self._evaluate(self.model))))
        return self.model

    def run(
        self, oracle: Oracle, *, n_labels: int, target: float | None = None
    ) -> None:
        """Ask, have labelled, fit, and again.

        Parameters
        ----------
        oracle : callable
            From row numbers to their labels, such as ``lambda rows: y[rows]``.
        n_labels : int
            Stop when the model was fitted to so many labels (all of the pool, if it
            is smaller).
        target : float, optional
            Stop earlier, when the score is at least this.
        """
        most = min(check.positive_int("n_labels", n_labels), self._n_pool)
        while not self._is_done(most, target):
            rows = self.ask()[: most - len(self._state.rows)]
            self.tell(rows, oracle(rows))
        self.fit()

    # ------------------------------------------------------------ private

    def _is_done(self, most: int, target: float | None) -> bool:
        if len(self._state.rows) >= most:
            return True
        if target is None or self._evaluate is None:
            return False
        self.fit()
        return self.curve.score[-1] >= target

    def _choose(self) -> Rows:
        """The best of the candidates; nothing depends on how the loop was begun."""
        left = np.setdiff1d(np.arange(self._n_pool), self.rows)
        if not len(left):
            raise ParameterError("All rows of the pool have a label.")
        key = stream_key(self._seed, f"step {len(self._state.rows)}")
        generator = np.random.default_rng(key)
        if self._n_candidates is not None and len(left) > self._n_candidates:
            left = np.sort(generator.choice(left, self._n_candidates, replace=False))
        number = min(self._n_per_step, len(left))
        if isinstance(self._acquisition, RandomChoice):
            return generator.choice(left, number, replace=False)
        predictive = self.model.predictive(take(self._pool, left))
        check_length(predictive, len(left))
        chosen = self._acquisition.choose(
            predictive, number, seed=int(generator.integers(2**62))
        )
        return left[chosen]

    def _new_rows(self, rows: Any) -> Rows:
        numbers = np.asarray(rows)
        if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
            raise InputTypeError(
                f"rows must be one axis of row numbers. Got {numbers.dtype} of shape "
                f"{numbers.shape}."
            )
        known = set(self._state.rows)
        for row in numbers.tolist():
            if not 0 <= row < self._n_pool or row in known:
                what = "has a label" if row in known else "is not in the pool"
                raise ParameterError(
                    f"rows must be different rows from 0 to {self._n_pool - 1} without "
                    f"a label. Got {row}, which {what}."
                )
            known.add(row)
        return numbers.astype(np.int64)

    def _keep(self, state: LearnerState) -> None:
        if self._path is not None:
            write_state(self._path, self._settings(), state)
        self._state = state

    def _settings(self) -> dict[str, Any]:
        return {
            "n_pool": self._n_pool,
            "acquisition": _name(self._acquisition),
            "n_per_step": self._n_per_step,
            "n_candidates": self._n_candidates,
            "seed": self._seed,
        }


def check_length(predictive: Any, expected: int) -> None:
    """A predictive of exactly the rows that were asked for."""
    if not isinstance(predictive, Predictive):
        raise InputTypeError(
            f"estimator.predictive must return a caveat Predictive. Got "
            f"{type(predictive).__name__}."
        )
    if len(predictive) != expected:
        raise ShapeError(
            f"estimator.predictive must have one row per candidate, {expected}. "
            f"Got {len(predictive)}."
        )


def _checked(estimator: Any) -> Any:
    for method in ("fit", "predictive"):
        if not callable(getattr(estimator, method, None)):
            raise InputTypeError(
                f"estimator must have the methods fit(X, y) and predictive(X). "
                f"{type(estimator).__name__} has no {method}."
            )
    return estimator


def _candidates(value: Any, n_per_step: int) -> int | None:
    if value is None:
        return None
    number = check.positive_int("n_candidates", value)
    if number < n_per_step:
        raise ParameterError(
            f"n_candidates must be at least n_per_step, {n_per_step}. Got {number}."
        )
    return number


def _name(acquisition: Acquisition) -> str:
    """A name that is the same in another run: no addresses of objects."""
    own = vars(acquisition) if hasattr(acquisition, "__dict__") else {}
    values = [f"{name}={_plain(value)}" for name, value in own.items()]
    return f"{type(acquisition).__name__}({', '.join(values)})"


def _plain(value: Any) -> str:
    if isinstance(value, str | int | float):
        return str(value)
    return str(getattr(value, "__name__", type(value).__name__))
