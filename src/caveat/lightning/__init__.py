"""Lightning: a callback with which ``trainer.predict`` gives predictives."""

from caveat._optional import require

require("lightning", extra="lightning")  # before the parts import it

from caveat.lightning.writer import PredictionWriter  # noqa: E402

__all__ = ["PredictionWriter"]
