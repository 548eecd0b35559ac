"""Choosing the spec of dropout networks by validation, without a leak.

Every candidate is trained on folds of the training rows of every task, all of them as
fleets; the precision follows from the stored validation errors (``likelihood``), so
only rates, depth, length-scale and epochs need a grid.
"""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from caveat import _validation as validation
from caveat._progress import ProgressBar
from caveat._version import __version__
from caveat.engines import Engine, spread
from caveat.errors import ParameterError
from caveat.evaluation.precision import BestScale
from caveat.training.ensembles import Ensemble, Problem, fit_ensembles
from caveat.training.folds import (
    Fold,
    Folds,
    contiguous_folds,
    folds_by_size,
    last_fifth,
)
from caveat.training.likelihood import Residuals, best_scale, residuals
from caveat.training.spec import NetworkSpec
from caveat.training.stores import Key, Memory, Store, fingerprint

__all__ = [
    "Choice",
    "Fold",
    "Folds",
    "Memory",
    "Running",
    "Store",
    "Task",
    "best_choice",
    "contiguous_folds",
    "folds_by_size",
    "grid_search",
    "held_out_residuals",
    "last_fifth",
    "score_of",
    "validated",
]

Array = NDArray[np.float64]

_STANDARD_RANGE = (1e-2, 1e6)  # of a precision, in standard units
_FACTOR_RANGE = (1e-4, 1e2)  # of a factor on learned precisions
_AT_ONCE = 256  # networks trained between two visits to the store, or
_LEAST_AT_ONCE = 32  # so many, if together they
_WORK = 2**28  # look at so many rows


@dataclass(frozen=True, eq=False)
class Task:
    """Training rows for which a spec is to be chosen; it never sees test rows.

    Parameters
    ----------
    name : str
    x : array, shape (rows, inputs)
    y : array, shape (rows, targets)
        In units alike: one precision serves all targets.
    seed : int
        Its own part of the seed, beside that of the search.
    """

    name: str
    x: Array
    y: Array
    seed: int = 0

    def __post_init__(self) -> None:
        if self.x.ndim != 2 or self.y.ndim != 2 or len(self.x) != len(self.y):
            raise ParameterError(
                "x and y of a task must be (rows, inputs) and (rows, targets). "
                f"Got {self.x.shape} and {self.y.shape}."
            )


@dataclass(frozen=True)
class Choice:
    """The best spec of a task, and what was seen of all.

    Attributes
    ----------
    spec : NetworkSpec
    score : BestScale
        Its scale is the precision in the units of 1/y², or, with a noise head, the
        factor on the learned precisions.
    scores : dict of NetworkSpec to BestScale
    """

    spec: NetworkSpec
    score: BestScale
    scores: dict[NetworkSpec, BestScale]


class Running(TypedDict, total=False):
    """How the work of a search is done; it changes no score but by rounding.

    Attributes
    ----------
    n_threads : int or None
        Cores to use in this process, by default as many as torch does.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.
    n_workers : int or None
        With 1, the default, all is done in this process, as fleets. Else a candidate is
        a job for one of so many processes; None is one per core.
    engine : Engine, or its name
        Processes of this machine ("local"), or Ray ("ray").
    address : str or None
        Of a Ray cluster; by default one is started on this machine.
    """

    n_threads: int | None
    progress: bool | None
    n_workers: int | None
    engine: Engine | str
    address: str | None


def grid_search(
    tasks: Sequence[Task],
    specs: Sequence[NetworkSpec],
    *,
    seed: int = 0,
    folds: Folds = folds_by_size,
    store: Store | None = None,
    **running: Unpack[Running],
) -> list[Choice]:
    """The best spec of each task by validation log-likelihood.

    Parameters
    ----------
    tasks : sequence of Task
        Whose networks are chosen.
    specs : sequence of NetworkSpec
        All are trained on every fold of every task.
    seed : int
        Of all networks, beside those of the tasks.
    folds : callable
        From the number of rows of a task to its folds.
    store : Store, optional
        Scores found there are not computed again.
    **running
        ``n_threads``, ``progress``, ``n_workers``, ``engine`` and ``address``; see
        :class:`Running`.

    Returns
    -------
    list of Choice
        One per task.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 60)[:, None]
    >>> spec = NetworkSpec((20,), schedule=Schedule(epochs=200))
    >>> specs = [spec.vary(drop_rate=rate) for rate in (0.01, 0.9)]
    >>> [choice] = grid_search([Task("line", x, 2 * x)], specs)
    >>> choice.spec.drop_rate
    0.01
    """
    if not specs:
        raise ParameterError("specs must hold at least one. Got none.")
    pairs = [(task, spec) for task in tasks for spec in specs]
    scores = validated(pairs, seed=seed, folds=folds, store=store, **running)
    found: dict[Task, dict[NetworkSpec, BestScale]] = {task: {} for task in tasks}
    for (task, spec), score in zip(pairs, scores, strict=True):
        found[task][spec] = score
    return [best_choice(task, found[task]) for task in tasks]


Pair = tuple[Task, NetworkSpec]


def validated(
    pairs: Sequence[Pair],
    *,
    seed: int = 0,
    folds: Folds = folds_by_size,
    store: Store | None = None,
    **running: Unpack[Running],
) -> list[BestScale]:
    """Validation scores of specs, each on its task; those stored are not redone.

    Parameters
    ----------
    pairs : sequence of (Task, NetworkSpec)
        What to train, and on what.
    seed, folds, store
        As for :func:`grid_search`.
    **running
        Likewise.

    Returns
    -------
    list of BestScale
        In the order of ``pairs``.
    """
    store = Memory() if store is None else store
    tasks = dict.fromkeys(task for task, _ in pairs)
    prints = {task: _fingerprint(task, seed, folds) for task in tasks}

    def key(pair: Pair) -> Key:
        spec = pair[1].described()
        whole = fingerprint(prints[pair[0]].encode(), spec.encode())
        return Key(whole, spec, pair[0].name)

    wanted = list(dict.fromkeys(pairs))
    if _is_here(running):
        validate = partial(_validate, seed, folds, running)
        found = _in_fleets(wanted, store, key, validate, folds)
    else:
        missing = [pair for pair in wanted if store.get(key(pair)) is None]
        found = _spread(missing, partial(_validate_alone, seed, folds), running)
    with closing(found):  # Ctrl-C, too: nobody waits for what runs now
        for scores in found:
            store.put({key(pair): score for pair, score in scores.items()})
    return [_stored(store, key(pair)) for pair in pairs]


Scores = dict[Pair, BestScale]


def _is_here(running: Running) -> bool:
    """Whether nobody asks for other processes."""
    alone = running.get("n_workers", 1) == 1 and running.get("address") is None
    return alone and _engine(running) is not Engine.ray


def _engine(running: Running) -> Engine:
    given = running.get("engine", Engine.local)
    validation.one_of("engine", given, [str(one) for one in Engine])
    return Engine(given)


def _in_fleets(
    pairs: Sequence[Pair],
    store: Store,
    key: Callable[[Pair], Key],
    validate: Callable[[Sequence[Pair]], list[BestScale]],
    folds: Folds,
) -> Generator[Scores, None, None]:
    """In this process. What is stored does not change a fleet, nor how it rounds."""
    for fleet in _fleets(pairs, folds):
        missing = [pair for pair in fleet if store.get(key(pair)) is None]
        if missing:
            yield dict(zip(missing, validate(missing), strict=True))


def _spread(
    pairs: Sequence[Pair],
    validate: Callable[[Pair], BestScale],
    running: Running,
) -> Generator[Scores, None, None]:
    """On other processes or a cluster, a pair each, as they end."""
    answers = spread(
        validate,
        pairs,
        running.get("n_workers", 1),
        engine=_engine(running),
        address=running.get("address"),
    )
    bar = ProgressBar("candidates", len(pairs), running.get("progress", False))
    with bar, closing(answers):
        for pair, score in answers:
            yield {pair: score}
            bar.advance()


def _validate_alone(seed: int, folds: Folds, pair: Pair) -> BestScale:
    return _validate(seed, folds, {"n_threads": 1, "progress": False}, [pair])[0]


def _stored(store: Store, key: Key) -> BestScale:
    score = store.get(key)
    if score is None:
        raise ParameterError(
            f"store must keep what is put into it. {type(store).__name__} has lost "
            f"the score of {key.spec} on {key.task!r}."
        )
    return score


def _fingerprint(task: Task, seed: int, folds: Folds) -> str:
    """Of all that a score depends on beside the spec."""
    arrays: list[NDArray[Any]] = [task.x, task.y]
    for fold in folds(len(task.x)):
        arrays += [fold.train, fold.valid]
    parts = [
        part
        for array in arrays
        for part in (repr(array.shape).encode(), np.float64(array).tobytes())
    ]
    seeds = repr((int(seed), int(task.seed)))
    return fingerprint(__version__.encode(), seeds.encode(), *parts)


def _fleets(pairs: Sequence[Pair], folds: Folds) -> Iterator[list[Pair]]:
    """Pairs whose networks make a fleet: alike, and not too many."""

    def kind_of(pair: Pair) -> tuple[object, ...]:
        task, spec = pair
        return task.x.shape[1], task.y.shape[1], spec.shared

    for kind in dict.fromkeys(map(kind_of, pairs)):
        fleet: list[Pair] = []
        size = work = 0
        for task, spec in (p for p in pairs if kind_of(p) == kind):
            fleet.append((task, spec))
            trained = [len(fold.train) for fold in folds(len(task.x))]
            size += len(trained) * spec.n_members
            work += sum(trained) * spec.n_members * spec.schedule.epochs
            if size >= _AT_ONCE or (size >= _LEAST_AT_ONCE and work >= _WORK):
                yield fleet
                fleet, size, work = [], 0, 0
        if fleet:
            yield fleet


def _validate(
    seed: int, folds: Folds, running: Running, pairs: Sequence[Pair]
) -> list[BestScale]:
    parts = [(pair, fold) for pair in pairs for fold in folds(len(pair[0].x))]
    problems = [
        Problem(
            f"{task.name}, {spec}, fold {number}",
            task.x[fold.train],
            task.y[fold.train],
            spec,
            seed=task.seed,
        )
        for number, ((task, spec), fold) in enumerate(parts)
    ]
    ensembles = fit_ensembles(
        problems,
        seed=seed,
        n_threads=running.get("n_threads"),
        progress=running.get("progress", False),
    )
    found: dict[int, list[Residuals]] = {}
    for (pair, fold), ensemble in zip(parts, ensembles, strict=True):
        task, spec = pair
        errors = held_out_residuals(
            ensemble, task.x[fold.valid], task.y[fold.valid], spec.n_draws
        )
        found.setdefault(id(pair), []).append(errors)
    return [score_of(pair[0], pair[1], found[id(pair)]) for pair in pairs]


def held_out_residuals(
    ensemble: Ensemble, x: Array, y: Array, n_draws: int
) -> Residuals:
    """Errors of an ensemble's draws on rows it has not learned from."""
    draws = ensemble.draws(x, n_draws=n_draws)
    found = residuals(draws.means, draws.precisions, torch.from_numpy(y))
    return found.shortened()


def score_of(task: Task, spec: NetworkSpec, found: Sequence[Residuals]) -> BestScale:
    """The best scale on all folds together; the spec's own precision, if given."""
    if spec.precision is not None and spec.objective.precision is None:
        logs = torch.cat([r.log_density(spec.precision) for r in found])
        value = float(logs.mean(dtype=torch.float64))
        return BestScale(spec.precision, value if math.isfinite(value) else -math.inf)
    if spec.objective.has_head:
        low, high = _FACTOR_RANGE
    else:
        variance = float(np.var(task.y, 0).mean()) or 1.0
        low, high = (bound / variance for bound in _STANDARD_RANGE)
    return best_scale(found, low=low, high=high)


def best_choice(task: Task, scores: dict[NetworkSpec, BestScale]) -> Choice:
    """The spec with the highest score; the first of equals."""
    best = max(scores, key=lambda c: scores[c].log_likelihood)
    if not math.isfinite(scores[best].log_likelihood):
        raise ParameterError(
            f"all candidates diverged on {task.name}. Lower the learning rate."
        )
    return Choice(best, scores[best], scores)
