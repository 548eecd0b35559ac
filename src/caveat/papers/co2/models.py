"""The CO2 series and the models that extrapolate it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from caveat.data import CO2Data
from caveat.papers.series.jobs import (
    ERF_KERNEL,
    RELU_KERNEL,
    SQUARED_EXPONENTIAL,
    Effort,
    Job,
    NetJob,
    ProcessJob,
    Task,
    untrained,
)
from caveat.papers.series.nets import Net
from caveat.papers.series.points import Places

RELU_5, RELU_4 = "ReLU 5 layers drop 0.1", "ReLU 4 layers drop 0.1"
TANH_LOW, TANH_HIGH = "tanh 5 layers drop 0.1", "tanh 5 layers drop 0.2"
FAR = 10.0  # times x*: where tanh units are saturated


FULL = Effort(width=1024, n_steps=1000, n_draws=1000, every=3, n_restarts=2)
QUICK = Effort(width=48, n_steps=60, n_draws=50, every=8, n_restarts=0)


def nets(effort: Effort) -> tuple[Net, ...]:
    """The released nets, but for the number of steps."""
    size = {
        "batch_size": 200,
        "n_steps": effort.n_steps,
        "width": effort.width,
    }
    return (
        Net(RELU_5, "relu", 4, 0.1, 1e-2, 1e-6, **size),
        Net(TANH_LOW, "tanh", 4, 0.1, 5e-3, 5e-7, **size),
        Net(TANH_HIGH, "tanh", 4, 0.2, 1e-2, 0.0, **size),
        Net(RELU_4, "relu", 3, 0.1, 1e-2, 1e-6, gamma=1e-5, power=0.1, **size),
    )


def series(data: CO2Data, every: int) -> Task:
    """Training months, later months up to x*, x* itself and a place far beyond."""
    star = float(data.x_test[-1])
    later = data.future.x < star
    nearest = int(np.abs(data.future.x - star).argmin())
    places = Places.of(
        [
            ("train", data.train.x[::every], data.train.y[::every]),
            ("later", data.future.x[later][::every], data.future.y[later][::every]),
            ("x*", np.array([star]), data.future.y[nearest : nearest + 1]),
            ("far", np.array([FAR * star]), np.array([np.nan])),
        ]
    )
    return Task(data.train.x, data.train.y, places)


def jobs(task: Task, effort: Effort, folder: Path) -> Iterator[Job]:
    """All models, the longest first."""
    trained = [NetJob(net, task, effort.n_draws, folder) for net in nets(effort)]
    yield from trained
    for name in (SQUARED_EXPONENTIAL, RELU_KERNEL, ERF_KERNEL):
        yield ProcessJob(name, task, effort.n_restarts)
    yield from (untrained(job) for job in trained if job.net.activation == "tanh")
