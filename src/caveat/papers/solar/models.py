"""The irradiance series with its gaps, and the models that fill them."""

from collections.abc import Iterator
from pathlib import Path

from caveat.data import SolarData
from caveat.papers.series.jobs import (
    ERF_KERNEL,
    RELU_KERNEL,
    SQUARED_EXPONENTIAL,
    Effort,
    Job,
    NetJob,
    ProcessJob,
    Task,
)
from caveat.papers.series.nets import Net
from caveat.papers.series.points import Places

RELU_5, RELU_4 = "ReLU 5 layers drop 0.1", "ReLU 4 layers drop 0.1"
TANH_5 = "tanh 5 layers drop 0.1"


FULL = Effort(width=1024, n_steps=600, n_draws=1000, every=3, n_restarts=2)
QUICK = Effort(width=48, n_steps=60, n_draws=50, every=8, n_restarts=0)


def nets(effort: Effort) -> tuple[Net, ...]:
    """The two released nets, but for the number of steps, and tanh as for CO2."""
    size = {
        "batch_size": 275,
        "n_steps": effort.n_steps,
        "width": effort.width,
    }
    return (
        Net(RELU_5, "relu", 4, 0.1, 5e-2, 5e-6, **size),
        Net(TANH_5, "tanh", 4, 0.1, 5e-3, 5e-7, **size),
        Net(RELU_4, "relu", 3, 0.1, 3e-2, 3e-6, **size),
    )


def series(data: SolarData, every: int) -> Task:
    """The points of the gaps, and some of the training points."""
    train, test = data.train, data.test
    places = Places.of(
        [("train", train.x[::every], train.y[::every]), ("gap", test.x, test.y)]
    )
    return Task(train.x, train.y, places)


def jobs(task: Task, effort: Effort, folder: Path) -> Iterator[Job]:
    """All models, the longest first."""
    for net in nets(effort):
        yield NetJob(net, task, effort.n_draws, folder)
    for name in (SQUARED_EXPONENTIAL, RELU_KERNEL, ERF_KERNEL):
        yield ProcessJob(name, task, effort.n_restarts)
