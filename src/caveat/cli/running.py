"""Long work at a terminal: warnings as lines, Ctrl-C and closed pipes in words."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from caveat.errors import StoppedError


@contextmanager
def running() -> Iterator[None]:
    """Long work: warnings as lines, Ctrl-C as an error, a closed pipe as the end."""
    told: set[str] = set()

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in told:  # of each fold, say
            told.add(str(message))
            typer.echo(f"caveat: warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = tell
        try:
            yield
        except KeyboardInterrupt:
            raise StoppedError("stopped by Ctrl-C; nothing was written.") from None
        except BrokenPipeError:
            # Whoever reads has enough. What is left must not fail at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit from None
