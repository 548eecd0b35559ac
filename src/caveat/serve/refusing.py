"""Requests that are not answered, and why."""

from reprlib import Repr
from typing import NoReturn

from caveat.errors import CaveatError, shortened

BAD, UNKNOWN, TOO_LARGE, MEDIA, BUSY = 400, 404, 413, 415, 503


class RefusedError(CaveatError, ValueError):
    """A request that gets an error for an answer.

    Parameters
    ----------
    message : str
        What was expected, what came, what to do.
    status : int
        Of HTTP.
    """

    def __init__(self, message: str, status: int = BAD) -> None:
        super().__init__(message)
        self.status = status


def refuse(message: str, status: int = BAD) -> NoReturn:
    """Raise a :class:`RefusedError`."""
    raise RefusedError(message, status)


def quoted(value: object) -> str:
    """What came, for a message: short, and on one line."""
    return shortened(_SHOWN.repr(value), 80)


_SHOWN = Repr()  # looks at the beginning only, of what may be large and deep
_SHOWN.maxlevel = 3
