"""Cascades: cheap models first, better ones for what these were unsure of."""

from caveat.decisions.cascade.answers import CascadeAnswer
from caveat.decisions.cascade.cascade import Cascade
from caveat.decisions.cascade.report import CascadeReport, StageReport
from caveat.decisions.cascade.search import Frontier
from caveat.decisions.cascade.stages import Person, Stage

__all__ = [
    "Cascade",
    "Stage",
    "Person",
    "CascadeAnswer",
    "CascadeReport",
    "StageReport",
    "Frontier",
]
