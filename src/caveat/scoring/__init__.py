"""Folders of tables scored by a model file: in pieces, on any number of workers."""

from caveat._optional import require

require("pyarrow", extra="files")  # before the parts import it

from caveat.scoring.outcomes import Failed, UnitsFailedError  # noqa: E402
from caveat.scoring.running import Scored, score  # noqa: E402
from caveat.scoring.units import Unit  # noqa: E402

__all__ = ["Failed", "Scored", "Unit", "UnitsFailedError", "score"]
