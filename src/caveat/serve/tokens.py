"""Tokens: read from a file, compared in constant time."""

import hmac
from collections.abc import Collection
from pathlib import Path
from typing import Any

from caveat.errors import DataError

_SHORTEST = 16


def read_tokens(path: Any) -> tuple[str, ...]:
    """The tokens of a file, one a line; empty lines and those with # are left out.

    Parameters
    ----------
    path : str or Path
        Of the file.

    Returns
    -------
    tuple of str
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The tokens of {path} cannot be read: {error}.") from error
    found = [line.strip() for line in lines]
    found = [line for line in found if line and not line.startswith("#")]
    if not found:
        raise DataError(f"{path} must hold a token, one a line. It holds none.")
    for number, token in enumerate(found):
        if len(token) < _SHORTEST or not (token.isascii() and token.isprintable()):
            raise DataError(
                f"Token {number + 1} of {path} must be at least {_SHORTEST} plain "
                f"characters; make one by: openssl rand -hex 32."
            )
    return tuple(found)


def is_allowed(header: str | None, tokens: Collection[str]) -> bool:
    """Whether ``Authorization`` carries a token; all are compared, whichever fits."""
    scheme, _, given = (header or "").partition(" ")
    raw = given.strip().encode("utf-8", "surrogateescape")
    fits = [hmac.compare_digest(raw, token.encode()) for token in tokens]
    return scheme.lower() == "bearer" and any(fits)
