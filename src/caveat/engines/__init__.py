"""Many independent jobs: in this process, on others, or on a cluster."""

from caveat.engines.jobs import WorkerLostError
from caveat.engines.spreading import Engine, spread

__all__ = ["Engine", "WorkerLostError", "spread"]
