"""JSON of strangers: strict, and never more than an error."""

import json
from typing import Any, NoReturn

from caveat.serve.refusing import RefusedError, quoted, refuse


def read_json(raw: bytes) -> dict[str, Any]:
    """An object of JSON as RFC 8259 has it: no NaN, no name twice, not too deep.

    Parameters
    ----------
    raw : bytes
        UTF-8.

    Returns
    -------
    dict
    """
    try:
        found = json.loads(
            raw.decode(), parse_constant=_constant, object_pairs_hook=_object
        )
    except RefusedError:  # a ValueError, too
        raise
    except UnicodeDecodeError:
        refuse("The body must be JSON in UTF-8.")
    except json.JSONDecodeError as error:
        refuse(f"The body must be JSON: {error}.")
    except RecursionError:
        refuse("The body is nested too deeply.")
    except ValueError as error:  # whole numbers of thousands of digits
        refuse(f"The body must be JSON of ordinary numbers: {error}.")
    if not isinstance(found, dict):
        refuse(f"The body must be an object of JSON. Got {quoted(found)}.")
    return found


def _constant(name: str) -> NoReturn:
    refuse(f"The body must be JSON, which has no {name}.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            refuse(f"The name {quoted(name)} stands twice in one object.")
        found[name] = value
    return found
