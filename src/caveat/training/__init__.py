"""Learning q(ω): many small networks trained as one, and searches over them."""

from caveat.training.bayesian import Choices, LogUniform, bayesian_search
from caveat.training.ensembles import Ensemble, Problem, fit_ensembles
from caveat.training.fleet import train
from caveat.training.kernel import KernelStatus, kernel_status
from caveat.training.members import Member, Rows
from caveat.training.objectives import (
    GaussianWithPrecision,
    SoftmaxCrossEntropy,
    SquaredError,
)
from caveat.training.schedules import EarlyStopping, Schedule
from caveat.training.search import Choice, Task, grid_search
from caveat.training.single import fit_module
from caveat.training.spec import NetworkSpec
from caveat.training.stopping import Watch
from caveat.training.stores import FileStore, Memory
from caveat.training.trained import Trained

__all__ = [
    "NetworkSpec",
    "Schedule",
    "EarlyStopping",
    "SquaredError",
    "GaussianWithPrecision",
    "SoftmaxCrossEntropy",
    "Member",
    "Rows",
    "train",
    "Trained",
    "kernel_status",
    "KernelStatus",
    "Watch",
    "fit_module",
    "Problem",
    "Ensemble",
    "fit_ensembles",
    "Task",
    "Choice",
    "grid_search",
    "bayesian_search",
    "LogUniform",
    "Choices",
    "FileStore",
    "Memory",
]
