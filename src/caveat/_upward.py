"""The one way upwards: a figure is asked of what it shows, and drawn by who draws.

Packages import lower ones only (docs/design.md). A method such as ``predictive.plot``
stands on the object, where people look for it; its drawing is in ``caveat.evaluation``,
which is above. ``tests/test_architecture.py`` lists who goes upwards, and for what.
"""

from importlib import import_module
from typing import Any

from caveat._optional import require


def display(where: str) -> Any:
    """A display, ``module:Class``, imported now; without matplotlib, a message."""
    require("matplotlib", extra="plot")
    module, name = where.split(":")
    return getattr(import_module(module), name)
