"""Test error and log-likelihood of a network as the number of passes grows."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from caveat._progress import ProgressBar
from caveat.papers.lenet.images import load_images
from caveat.papers.lenet.predictions import drawn_logits, grouped, standard_log_probs
from caveat.papers.lenet.storage import Store
from caveat.papers.lenet.training import NetJob
from caveat.papers.records import read_records, write_records
from caveat.papers.workers import spread

STANDARD = 0  # as ``n_draws``: one pass with averaged weights


@dataclass(frozen=True)
class Score:
    """How good some log probabilities are.

    Attributes
    ----------
    error : float
        Share of images with a wrong label.
    log_likelihood, log_likelihood_se : float
        Mean log probability of the true class, and its standard error over images.
    """

    error: float
    log_likelihood: float
    log_likelihood_se: float

    @classmethod
    def of(cls, log_probs: Tensor, label: Tensor) -> "Score":
        """Of log probabilities (images, classes)."""
        error = (log_probs.argmax(-1) != label).double().mean()
        own = log_probs.gather(-1, label[:, None]).double()
        spread_of_mean = own.std() / math.sqrt(len(label))
        return cls(float(error), float(own.mean()), float(spread_of_mean))


@dataclass(frozen=True)
class Point:
    """A network asked with some number of passes.

    Attributes
    ----------
    dropout : str
    n_steps : int
    seed : int
    n_draws : int
        T; 0 is the standard pass with averaged weights.
    n_groups : int
        Disjoint groups of T draws that the numbers are averages of.
    n_images : int
    error, error_sd : float
        Share of wrong labels, and its standard deviation over groups.
    log_likelihood, log_likelihood_se : float
        Mean log probability of the true class, and its standard error over images.
    mended, broken : float
        Images right by these draws and wrong by the standard pass, and the reverse.
    """

    dropout: str
    n_steps: int
    seed: int
    n_draws: int
    n_groups: int
    n_images: int
    error: float
    error_sd: float
    log_likelihood: float
    log_likelihood_se: float
    mended: float
    broken: float


@dataclass(frozen=True)
class CurveJob:
    """A network to be asked with growing numbers of passes.

    Attributes
    ----------
    store : Store
    net : NetJob
    sizes : tuple of int
        Numbers of draws, the largest last; none for the standard pass alone.
    n_images : int or None
        Test images; None for all.
    """

    store: Store
    net: NetJob
    sizes: tuple[int, ...]
    n_images: int | None

    @property
    def path(self) -> Path:
        """The file of the answer, beside that of the network."""
        net = self.store.path(self.net)
        return net.with_name(f"{net.stem}_{max(self.sizes, default=0)}_draws.csv")


def curves(
    jobs: Sequence[CurveJob],
    *,
    n_workers: int | None = None,
    progress: bool | None = None,
) -> list[Point]:
    """The points of all networks; those that a file beside the network holds are kept.

    Parameters
    ----------
    jobs : sequence of CurveJob
        Networks that are in their stores.
    n_workers : int, optional
        Processes, by default one per core.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.

    Returns
    -------
    list of Point
        Network by network.
    """
    missing = [job for job in jobs if not _is_done(job)]
    with ProgressBar("LeNets asked", len(missing), progress) as bar:
        for job, found in zip(missing, spread(curve, missing, n_workers), strict=True):
            write_records(job.path, found)
            bar.advance()
    return [point for job in jobs for point in read_records(job.path, Point)]


def curve(job: CurveJob) -> list[Point]:
    """The points of one network."""
    net, test = job.store.load(job.net), load_images().test.first(job.n_images)
    standard = standard_log_probs(net, test.image)
    found = [_point(job, STANDARD, [standard], standard, test.label)]
    if job.sizes:
        logits = drawn_logits(net, test.image, n_draws=max(job.sizes))
        found += _of_draws(job, logits.log_softmax(-1), standard, test.label)
    return found


def _of_draws(
    job: CurveJob, draws: Tensor, standard: Tensor, label: Tensor
) -> Iterator[Point]:
    for size in job.sizes:
        yield _point(job, size, list(grouped(draws, size)), standard, label)


def _point(
    job: CurveJob, size: int, groups: list[Tensor], standard: Tensor, label: Tensor
) -> Point:
    scores = [Score.of(group, label) for group in groups]
    errors = [score.error for score in scores]
    was_right = standard.argmax(-1) == label
    right = torch.stack([group.argmax(-1) == label for group in groups])
    return Point(
        job.net.dropout,
        job.net.n_steps,
        job.net.seed,
        size,
        len(groups),
        len(label),
        float(np.mean(errors)),
        float(np.std(errors, ddof=1)) if errors[1:] else 0.0,
        float(np.mean([score.log_likelihood for score in scores])),
        float(np.mean([score.log_likelihood_se for score in scores])),
        _count(right & ~was_right),
        _count(~right & was_right),
    )


def _count(found: Tensor) -> float:
    """Images per group."""
    return float(found.double().sum(1).mean())


def _is_done(job: CurveJob) -> bool:
    stored = read_records(job.path, Point)
    n_images = len(load_images().test.first(job.n_images))
    sizes = [point.n_draws for point in stored if point.n_images == n_images]
    return sizes == [STANDARD, *job.sizes]
