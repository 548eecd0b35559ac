"""Requests that arrive together are computed together, by one thread."""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from caveat.errors import CaveatError
from caveat.serve.answers import Arrays
from caveat.serve.asking import Settings
from caveat.serve.computing import SIZES, answer
from caveat.serve.costs import CostModel
from caveat.serve.limits import Limits
from caveat.serve.models import ServedModel
from caveat.serve.refusing import BUSY, RefusedError, quoted, refuse

_SMALL, _LARGE = (1, 8), (16, 256)  # rows and draws of the first answers
_LONGER = 0.005  # seconds: a window with a budget
_MEETING = 2.0  # seconds, for batches of other sizes
FAULT = 500


@dataclass(eq=False)
class QueuedJob:
    """The rows of one request, waiting.

    Attributes
    ----------
    name : str
        Of the model.
    x : array
        Checked features.
    settings : Settings
    wanted : tuple of str
        Outputs.
    """

    name: str
    x: NDArray[Any]
    settings: Settings
    wanted: tuple[str, ...]
    arrived: float = field(default_factory=time.monotonic)
    future: "Future[Arrays]" = field(default_factory=Future)

    @property
    def key(self) -> tuple[Any, ...]:
        """Jobs with equal keys can be computed together."""
        return (self.name, self.settings, self.x.shape[1:], self.x.dtype)


@final
class Batcher:
    """A bounded queue, and one thread that answers it.

    Parameters
    ----------
    models : dict of str to ServedModel
    limits : Limits
    watch : callable, optional
        Told of every batch: model, rows, draws, requests, seconds.
    """

    def __init__(
        self,
        models: dict[str, ServedModel],
        limits: Limits,
        watch: Callable[[str, int, int, int, float], None] | None = None,
    ) -> None:
        self._models, self._limits, self._watch = models, limits, watch
        self._waiting: deque[QueuedJob] = deque()
        self._news = threading.Condition()
        self._stopping = False
        self.is_draining = False
        self._thread: threading.Thread | None = None
        self.costs = {name: CostModel() for name in models}

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Warm the models up, and take jobs."""
        for name in self._models:
            self._warm_up(name)
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="caveat-serve")
        self._thread.start()

    def stop(self) -> None:
        """Answer what waits, then end."""
        with self._news:
            self._stopping = True
            self._news.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def drain(self) -> None:
        """Say that no more requests are wanted; those that come are answered."""
        self.is_draining = True

    @property
    def is_ready(self) -> bool:
        """Whether jobs are taken."""
        alive = self._thread is not None and self._thread.is_alive()
        return alive and not (self._stopping or self.is_draining)

    @property
    def waiting(self) -> int:
        """Jobs in the queue."""
        return len(self._waiting)

    def retry_after(self) -> int:
        """Seconds after which the queue may be shorter."""
        with self._news:
            jobs = list(self._waiting)
        total = 0.0
        for job in jobs:
            number = job.settings.n_draws or self._models[job.name].n_draws
            total += self.costs[job.name].seconds(len(job.x), number)
        return max(1, min(60, round(total)))

    # ------------------------------------------------------------ jobs

    def submit(self, job: QueuedJob) -> "Future[Arrays]":
        """Put a job into the queue, or refuse it at once if that is full."""
        with self._news:
            if self._stopping or self._thread is None:
                refuse("The server is stopping.", BUSY)
            if len(self._waiting) >= self._limits.max_waiting:
                refuse("The server has more requests than it can answer.", BUSY)
            self._waiting.append(job)
            # Woken for each of them, the thread would be in the way of the loop.
            if len(self._waiting) == 1 or self._is_full():
                self._news.notify_all()
        return job.future

    def _is_full(self) -> bool:
        """Whether a batch may be; requests of one row are seldom so many."""
        most = self._most_rows()
        if len(self._waiting) >= most or len(self._waiting[-1].x) > 1:
            return sum(len(job.x) for job in self._waiting) >= most
        return False

    def _work(self) -> None:
        while True:
            jobs = self._next()
            if not jobs:
                return
            self._answer(jobs)

    def _next(self) -> list[QueuedJob]:
        """The oldest job and all that can be computed with it; none at the end."""
        with self._news:
            while not self._waiting:
                if self._stopping:
                    return []
                self._news.wait()
            first = self._waiting[0]
            until = first.arrived + self._window(first.settings.budget)
            while not self._stopping and self._rows_like(first) < self._most_rows():
                left = until - time.monotonic()
                if left <= 0.0:
                    break
                self._news.wait(left)
            return self._taken(first)

    def _window(self, budget: float | None) -> float:
        """For how long a request waits for others; a budget leaves time for more."""
        own = self._limits.window
        return own if budget is None else max(own, min(_LONGER, 0.1 * budget))

    def _most_rows(self) -> int:
        return self._limits.batch_rows

    def _rows_like(self, first: QueuedJob) -> int:
        return sum(len(job.x) for job in self._waiting if job.key == first.key)

    def _taken(self, first: QueuedJob) -> list[QueuedJob]:
        found, rows, others = [first], len(first.x), deque[QueuedJob]()
        for job in list(self._waiting)[1:]:
            if job.key == first.key and rows + len(job.x) <= self._most_rows():
                found.append(job)
                rows += len(job.x)
            else:
                others.append(job)
        self._waiting = others
        return found

    # ------------------------------------------------------------ answers

    def _answer(self, jobs: list[QueuedJob]) -> None:
        now, limit = time.monotonic(), self._limits.max_wait
        fresh = []
        for job in jobs:
            if now - job.arrived > limit:
                words = f"The request waited for more than {limit:g} seconds."
                _fail(job, RefusedError(words, BUSY))
            elif job.future.set_running_or_notify_cancel():
                fresh.append(job)
        if not fresh:
            return
        try:
            self._together(fresh)
        except Exception as error:  # whatever a model may raise
            if len(fresh) == 1:
                _fail(fresh[0], _told(error))
                return
            for job in fresh:  # one of them is poisoned: the others are not to suffer
                try:
                    self._together([job])
                except Exception as own:
                    _fail(job, _told(own))

    def _together(self, jobs: list[QueuedJob]) -> None:
        name, start = jobs[0].name, time.monotonic()
        model, x = self._models[name], np.concatenate([job.x for job in jobs])
        settings = self._settled(jobs, len(x))
        wanted = {*(w for job in jobs for w in job.wanted), "n_draws"}
        found = answer(model, x, settings, sorted(wanted))
        seconds = time.monotonic() - start
        draws = int(found["n_draws"].max())
        if settings.tolerance is None and draws:
            self.costs[name].learn(len(x), settings.n_draws or draws, seconds)
        if self._watch is not None:
            self._watch(name, len(x), int(found["n_draws"].sum()), len(jobs), seconds)
        place, is_fine = 0, _not_finite(found) is None
        for job in jobs:
            rows = slice(place, place + len(job.x))
            place += len(job.x)
            _finish(job, {w: found[w][rows] for w in job.wanted}, is_fine=is_fine)

    def _settled(self, jobs: list[QueuedJob], rows: int) -> Settings:
        """With the draws that the budget leaves time for."""
        settings = jobs[0].settings
        if settings.budget is None:
            return settings
        oldest = min(job.arrived for job in jobs)
        left = settings.budget - (time.monotonic() - oldest)
        most = settings.most
        if settings.n_draws is not None:
            most = min(most, settings.n_draws)
        number = self.costs[jobs[0].name].draws(rows, left, most)
        if settings.tolerance is not None:
            return replace(settings, most=max(number // 2, 8))  # all steps count
        return replace(settings, n_draws=number)

    def _warm_up(self, name: str) -> None:
        model = self._models[name]
        x = model.features_of_rows([model.example]).x
        wanted = sorted(info.name for info in model.outputs)
        seen = {}
        for _ in range(2):  # the first time everything is slow
            for rows, draws in (_SMALL, _LARGE):
                start = time.monotonic()
                settings = Settings(n_draws=draws)
                answer(model, np.repeat(x, rows, 0), settings, wanted)
                seen[rows * draws] = time.monotonic() - start
        small, large = seen.items()
        self.costs[name].start(small, large)
        if model.remembers_sizes:
            self._meet_sizes(model, x, wanted)

    def _meet_sizes(self, model: ServedModel, x: NDArray[Any], wanted: Any) -> None:
        """Answer batches of all sizes, or those that there is time for."""
        until, few = time.monotonic() + _MEETING, Settings(n_draws=8)
        for size in SIZES:
            rows = np.repeat(x, size, 0)
            # Twice, with other values: only then it is known what they change.
            others = rows + 1 if rows.dtype.kind == "f" else rows
            for own in (rows, others):
                if size > self._most_rows() or time.monotonic() > until:
                    return
                answer(model, own, few, wanted)


def _told(error: Exception) -> RefusedError:
    """A model's own refusal is the client's affair; all else is ours."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, CaveatError):
        return RefusedError(str(error))
    words = f"The model failed: {type(error).__name__}, {quoted(str(error))}."
    return RefusedError(words, FAULT)


def _finish(job: QueuedJob, found: Arrays, *, is_fine: bool) -> None:
    wrong = None if is_fine else _not_finite(found)
    if wrong is not None:
        name, row = wrong
        words = (
            f"Row {row + 1}: {name} is not a finite number; the inputs are too far "
            f"from what the model was fitted on, or the level is too near to 1."
        )
        _fail(job, RefusedError(words))
        return
    with contextlib.suppress(InvalidStateError):
        job.future.set_result(found)


def _not_finite(found: Arrays) -> tuple[str, int] | None:
    """The first output with a row that has no answer, and that row."""
    for name, values in found.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            bad = (~np.isfinite(values)).reshape(len(values), -1).any(1)
            return name, int(bad.argmax())
    return None


def _fail(job: QueuedJob, error: RefusedError) -> None:
    with contextlib.suppress(InvalidStateError):  # answered already, or given up
        job.future.set_exception(error)
