"""Learning q(ω): many small networks trained as one, and searches over them."""

from caveat.training.bayesian import Choices, LogUniform, bayesian_search
from caveat.training.ensembles import (
    Candidate,
    Ensemble,
    Problem,
    Settings,
    fit_ensembles,
)
from caveat.training.fleet import train
from caveat.training.members import Architecture, Member, Recipe, Rows
from caveat.training.search import Choice, Task
from caveat.training.single import fit_module
from caveat.training.stopping import Watch
from caveat.training.stores import FileStore, Memory
from caveat.training.trained import Trained

__all__ = [
    "Architecture",
    "Member",
    "Recipe",
    "Rows",
    "train",
    "Trained",
    "Watch",
    "fit_module",
    "Candidate",
    "Settings",
    "Problem",
    "Ensemble",
    "fit_ensembles",
    "Task",
    "Choice",
    "bayesian_search",
    "LogUniform",
    "Choices",
    "FileStore",
    "Memory",
]
