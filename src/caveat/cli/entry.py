"""``main``: all commands, and errors as words and exit codes."""

import os
import sys
from contextlib import suppress

import typer

# isort: off
from caveat.cli import demonstrating as demonstrating  # each adds its command, in
from caveat.cli import fitting as fitting  # the order of --help
from caveat.cli import predicting as predicting
from caveat.cli import reporting as reporting
from caveat.cli import scoring as scoring
from caveat.cli import auditing as auditing
from caveat.cli import serving as serving
from caveat.cli import reproducing as reproducing
from caveat.cli import data as data

# isort: on
from caveat.cli.app import app
from caveat.errors import CaveatError, StoppedError

_TOLD = 1  # of an error that is told in words
_INTERRUPTED = 130  # the exit code that shells know for Ctrl-C


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : list of str, optional
        What stands after ``caveat``; by default the arguments of the process.

    Returns
    -------
    int
        The exit code: 0 if all went well (also if the reader of a pipe has gone), 1
        for an error that is told in words, 2 for arguments that make no sense, 130 if
        it was stopped by Ctrl-C.
    """
    try:
        app(args=argv, prog_name="caveat")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except StoppedError as stopped:
        typer.echo(f"caveat: {stopped}", err=True)
        if argv is None:
            _leave(_INTERRUPTED)
        return _INTERRUPTED
    except CaveatError as error:
        typer.echo(f"caveat: {error}", err=True)
        if argv is None:
            _leave(_TOLD)  # threads of Arrow may still read what was wrong
        return _TOLD
    return 0


def _leave(code: int) -> None:
    """End the process now: all was said and closed, and taking torch down takes long.

    A cluster of Ray ends with its driver on Linux; elsewhere its exit handler ends it.
    """
    if "ray" in sys.modules and sys.platform != "linux":
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # whoever reads has gone
            stream.flush()
    os._exit(code)
