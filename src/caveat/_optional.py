"""The only guard for optional packages."""

from importlib import import_module
from types import ModuleType

from caveat.errors import MissingExtraError


def require(name: str, *, extra: str) -> ModuleType:
    """Import the optional package ``name``, or say which extra brings it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"This needs the package {name!r}, which is not installed.\n"
            f"Install it with:  pip install 'caveat[{extra}]'"
        ) from error
