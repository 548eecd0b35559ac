"""Choosing a spec by Bayesian optimisation, as section 5.3 of paper 001 does.

Each task has its own Gaussian process over the validation log-likelihood. All of them
are asked for a few candidates at a time, and those of a round are trained as one fleet.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Unpack

import numpy as np

from caveat import _validation as validation
from caveat._optional import require
from caveat.errors import ParameterError
from caveat.evaluation.precision import BestScale
from caveat.training.search import (
    Choice,
    Folds,
    Running,
    Task,
    best_choice,
    folds_by_size,
    validated,
)
from caveat.training.spec import NetworkSpec, varied_names
from caveat.training.stores import Memory, Store


@dataclass(frozen=True)
class LogUniform:
    """All numbers between two bounds, those of equal ratio equally far apart.

    Parameters
    ----------
    low, high : float
        Above 0.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        validation.positive("low", self.low)
        if validation.positive("high", self.high) <= self.low:
            raise ParameterError(
                f"high must be above low. Got {self.low} to {self.high}."
            )

    def at(self, share: float) -> float:
        """The number below which there is a given share of the range."""
        return float(self.low * (self.high / self.low) ** share)

    def distribution(self, optuna: ModuleType) -> Any:
        """As Optuna knows it."""
        return optuna.distributions.FloatDistribution(self.low, self.high, log=True)

    def value(self, found: float) -> float:
        """What a number found by Optuna stands for."""
        return found


@dataclass(frozen=True, init=False)
class Choices:
    """A few values, none nearer to one than to another: ``Choices((50,), (50, 50))``.

    Parameters
    ----------
    *values
    """

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        if not values:
            raise ParameterError("Choices needs at least one value. Got none.")
        object.__setattr__(self, "values", values)

    def at(self, share: float) -> int:
        """The number of the value below which there is a given share of them."""
        return int(share * len(self.values))

    def distribution(self, optuna: ModuleType) -> Any:
        """As Optuna knows it: the numbers of the values."""
        return optuna.distributions.CategoricalDistribution(range(len(self.values)))

    def value(self, found: int) -> Any:
        """What a number found by Optuna stands for."""
        return self.values[found]


Space = Mapping[str, LogUniform | Choices]


def bayesian_search(
    tasks: Sequence[Task],
    space: Space,
    base: NetworkSpec,
    *,
    seed: int = 0,
    n_trials: int = 30,
    at_once: int = 4,
    folds: Folds = folds_by_size,
    store: Store | None = None,
    **running: Unpack[Running],
) -> list[Choice]:
    """The best spec of each task among those that a Gaussian process asks for.

    Parameters
    ----------
    tasks : sequence of Task
        Whose networks are chosen.
    space : mapping of str to LogUniform or Choices
        What is varied, by the names of the fields of ``NetworkSpec`` and of its
        ``Schedule``. A precision, in the units of 1/y², serves the weight decay and
        the density alike; if neither ``space`` nor ``base`` has one, it follows from
        the validation errors of each candidate.
    base : NetworkSpec
        What is not varied.
    seed : int
        With those of the tasks it decides what is asked for, and of all networks.
    n_trials : int
        Candidates per task.
    at_once : int
        Candidates of each task that are trained together before the next are asked for.
    folds : callable
        From the number of rows of a task to its folds.
    store : Store, optional
        Scores found there are not computed again. A search that was interrupted asks
        for the same candidates again, and goes on where it was.
    **running
        ``n_threads``, ``n_workers``, ``engine`` and others, as for
        :func:`caveat.training.grid_search`; candidates of a round run side by side.

    Returns
    -------
    list of Choice
        One per task.

    Notes
    -----
    The first candidates fill the space evenly (a Latin hypercube); the others are those
    of largest expected improvement given all that is known and those still asked for
    [Snoek2012]_. Trainings with like settings differ by chance, so the process has a
    noise of its own. Needs the extra ``search``.

    References
    ----------
    .. [Snoek2012] J. Snoek, H. Larochelle, R. P. Adams. Practical Bayesian optimization
       of machine learning algorithms. NeurIPS 2012.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 60)[:, None]
    >>> task = Task("line", x, 2 * x)
    >>> [choice] = bayesian_search(
    ...     [task],
    ...     {"precision": LogUniform(0.1, 1000.0), "drop_rate": Choices(0.01, 0.1)},
    ...     NetworkSpec(schedule=Schedule(epochs=20)),
    ...     n_trials=8,
    ... )
    >>> choice.spec.precision == choice.score.scale
    True
    """
    optuna = require("optuna", extra="search")
    _check(space, base)
    validation.positive_int("n_trials", n_trials)
    validation.positive_int("at_once", at_once)
    store = Memory() if store is None else store
    first = min(n_trials, max(at_once, len(space) + 2))
    studies = [_Study(optuna, task, space, base, seed) for task in tasks]
    for study in studies:
        study.begin(first)
    for start in range(0, n_trials, at_once):
        count = min(at_once, n_trials - start)
        pairs = [(study.task, c) for study in studies for c in study.ask(count)]
        scores = validated(pairs, seed=seed, folds=folds, store=store, **running)
        for place, study in enumerate(studies):
            study.tell(scores[place * count : (place + 1) * count])
    return [best_choice(study.task, study.scores) for study in studies]


def _check(space: Space, base: NetworkSpec) -> None:
    known = varied_names()
    for name, values in space.items():
        if name not in known:
            raise ParameterError(
                f"space may hold {', '.join(map(repr, known))}. Got {name!r}."
            )
        if not isinstance(values, LogUniform | Choices):
            raise ParameterError(
                f"space[{name!r}] must be LogUniform or Choices. Got {values!r}."
            )
    if not space:
        raise ParameterError("space must hold at least one setting. Got none.")
    if base.objective.has_head and "precision" in space:
        raise ParameterError(
            "space must not hold 'precision' with a noise head, which learns it. "
            "Leave it out."
        )


class _Study:
    """What is known of one task, and what to try next."""

    def __init__(
        self, optuna: ModuleType, task: Task, space: Space, base: NetworkSpec, seed: int
    ) -> None:
        self.task = task
        self.scores: dict[NetworkSpec, BestScale] = {}
        self._optuna = optuna
        self._space, self._base = space, base
        self._rng = np.random.default_rng([seed, task.seed])
        self._waiting: list[tuple[Any, NetworkSpec]] = []
        self._floor = _trivial_log_likelihood(task)
        with _quiet(optuna):
            sampler = optuna.samplers.GPSampler(
                seed=int(self._rng.integers(2**31)), n_startup_trials=1
            )
            self._study = optuna.create_study(direction="maximize", sampler=sampler)

    def begin(self, count: int) -> None:
        """The first candidates: a Latin hypercube."""
        strata = [self._rng.permutation(count) for _ in self._space]
        shares = (np.array(strata) + self._rng.random((len(strata), count))) / count
        for point in shares.T:
            named = zip(self._space.items(), point, strict=True)
            with _quiet(self._optuna):
                self._study.enqueue_trial(
                    {name: values.at(share) for (name, values), share in named}
                )

    def ask(self, count: int) -> list[NetworkSpec]:
        """So many candidates, which are expected to be told about."""
        distributions = {
            name: values.distribution(self._optuna)
            for name, values in self._space.items()
        }
        with _quiet(self._optuna):
            trials = [self._study.ask(distributions) for _ in range(count)]
        self._waiting = [(trial, self._candidate(trial.params)) for trial in trials]
        return [candidate for _, candidate in self._waiting]

    def tell(self, scores: Sequence[BestScale]) -> None:
        """The scores of the candidates asked for."""
        for (trial, candidate), score in zip(self._waiting, scores, strict=True):
            self.scores[candidate] = score
            with _quiet(self._optuna):
                self._study.tell(trial, _flattened(score.log_likelihood, self._floor))

    def _candidate(self, params: Mapping[str, Any]) -> NetworkSpec:
        found: dict[str, Any] = {
            name: values.value(params[name]) for name, values in self._space.items()
        }
        for name in ("epochs", "batch_size"):
            if name in found:
                found[name] = round(found[name])
        return self._base.vary(**found)


_DEEPEST = 20.0  # of a flattened score below the floor: what a divergence counts as


def _flattened(value: float, floor: float) -> float:
    """Scores in the same order, with those below the floor drawn together.

    A precision far too high costs thousands of nats; as they are, such values would
    leave a Gaussian process no eye for the differences near the optimum.
    """
    if value >= floor:
        return value
    return floor - min(math.log1p(floor - value), _DEEPEST)


def _trivial_log_likelihood(task: Task) -> float:
    """Of the training rows under a Gaussian with their mean and variance."""
    variance = np.var(task.y, 0)
    variance = np.where(variance > 0, variance, 1.0)
    return float(-0.5 * np.log(2 * np.pi * np.e * variance).sum())


@contextmanager
def _quiet(optuna: ModuleType) -> Iterator[None]:
    """Optuna without its messages, for a while."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            category = optuna.exceptions.ExperimentalWarning
            warnings.simplefilter("ignore", category)
            yield
    finally:
        optuna.logging.set_verbosity(before)
