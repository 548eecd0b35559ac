"""A progress bar for work that turns out to be long."""

import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE = 1.0  # seconds before a bar appears
_BETWEEN = 10.0  # seconds between lines where there is no terminal


class ProgressBar:
    """A bar that shows itself on a terminal once the work has taken a second.

    In a file or a pipe, where a bar would only be seen at its end, it is a line every
    ten seconds, if it is asked for.

    Parameters
    ----------
    what : str
        What is being counted.
    total : int or None
        How many there will be, if known.
    show : bool or None
        False never shows it; None shows it on a terminal only, True also elsewhere,
        as lines.
    """

    def __init__(self, what: str, total: int | None, show: bool | None) -> None:
        self._what = what
        self._total = total
        self._show = show
        self._start = time.perf_counter()
        self._done = 0
        self._progress: Progress | None = None
        self._next_line: float | None = None  # when it is due; None: no lines
        self._told: int | None = None  # what the last one said

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
        elif self._next_line is not None and self._told != self._done:
            self._line()

    def advance(self, by: int = 1) -> None:
        """Note that ``by`` more are done."""
        self._done += by
        if self._show is False:
            return
        now = time.perf_counter()
        if self._next_line is not None:
            if now >= self._next_line:
                self._line()
            return
        if self._progress is None and now - self._start > _PATIENCE:
            with python_generator_kept():
                self._open()
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=self._done)

    def _line(self) -> None:
        """Say how far it is, without the means of a terminal."""
        now = time.perf_counter()
        self._next_line, self._told = now + _BETWEEN, self._done
        total = "" if self._total is None else f" of {self._total}"
        seconds = f"{now - self._start:.0f} s"
        print(f"{self._what}: {self._done}{total}, {seconds}", file=sys.stderr)

    def _open(self) -> None:
        # Only now: most work is done before a bar would be shown.
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        if not console.is_terminal:
            if self._show:
                self._line()
            self._show = bool(self._show)
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._progress = Progress(
            *columns, TimeRemainingColumn(), console=console, transient=True
        )
        self._progress.add_task(self._what, total=self._total)
        self._progress.start()


@contextmanager
def python_generator_kept() -> Iterator[None]:
    """Put Python's own generator back on exit; importing rich draws from it."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)
