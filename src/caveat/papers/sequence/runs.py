"""One network trained, and scored after every epoch."""

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from caveat.papers.sequence.networks import Reader, make_reader
from caveat.papers.sequence.scores import (
    Score,
    best_precision,
    mc_draws,
    point_draws,
    score,
)
from caveat.papers.sequence.texts import N_WORDS, Part, Task, load_task
from caveat.sampling.mcdropout import MCDropout

Sample = Callable[[Part, int], Tensor]  # (draws, rows, outputs)

BATCH_SIZE = 128
LEARNING_RATE = 2e-3


@dataclass(frozen=True)
class Effort:
    """How much is run.

    Attributes
    ----------
    epochs : int
    n_draws, n_test_draws : int
        After each epoch, and on the test rows.
    most_rows : int or None
        Of each part; None takes all.
    """

    epochs: int
    n_draws: int
    n_test_draws: int
    most_rows: int | None = None


@dataclass(frozen=True)
class Job:
    """A network to train."""

    task: str
    variant: str
    drop_rate: float
    seed: int
    effort: Effort

    @property
    def key(self) -> tuple[str, str, float, int]:
        """What tells it from other jobs of the same effort."""
        return self.task, self.variant, self.drop_rate, self.seed


@dataclass(frozen=True)
class Record:
    """Scores of one network after one epoch.

    Attributes
    ----------
    task, variant : str
    drop_rate : float
    seed : int
    part : str
        ``"validation"`` after each epoch; ``"test"`` after the last one; and
        ``"test_stopped"`` after the one with the best validation log-likelihood.
    epoch : int
        From 1.
    n_rows, n_draws : int
    train_loss : float
        Mean over the epoch, with masks: squared error of the standardised rating, or
        cross-entropy.
    precision : float
        Of ratings, chosen on the validation rows; 1 for sentiment.
    error, log_likelihood : float
        By draws; of a network without masks, by its one output.
    point_error, point_log_likelihood : float
        With masks switched off.
    seconds : float
        CPU time of the epoch and its scores.
    """

    task: str
    variant: str
    drop_rate: float
    seed: int
    part: str
    epoch: int
    n_rows: int
    n_draws: int
    train_loss: float
    precision: float
    error: float
    log_likelihood: float
    point_error: float
    point_log_likelihood: float
    seconds: float

    @property
    def key(self) -> tuple[str, str, float, int]:
        """That of its job."""
        return self.task, self.variant, self.drop_rate, self.seed


def run_job(job: Job) -> list[Record]:
    """Train one network; torch's own generator is left alone.

    Parameters
    ----------
    job : Job
        What to train.

    Returns
    -------
    list of Record
        Of the validation rows after each epoch, then of the test rows.
    """
    task = load_task(job.task, job.effort.most_rows)
    with torch.random.fork_rng([]):
        torch.manual_seed(job.seed)
        reader = make_reader(job.variant, job.drop_rate, (N_WORDS, task.n_outputs))
        return list(_run(job, task, reader))


def _run(job: Job, task: Task, reader: Reader) -> Iterator[Record]:
    judge = _Judge(job, task, reader)
    best: tuple[Record, dict[str, Tensor]] | None = None
    for epoch, loss in enumerate(_train(reader, task, job), start=1):
        last = judge.validation(epoch, loss)
        yield last
        if best is None or last.log_likelihood > best[0].log_likelihood:
            best = last, copy.deepcopy(reader.state_dict())
    assert best is not None
    tested = judge.test("test", last)
    yield tested
    if best[0].epoch == last.epoch:
        yield replace(tested, part="test_stopped", seconds=0.0)
        return
    reader.load_state_dict(best[1])
    yield judge.test("test_stopped", best[0])


def _train(reader: Reader, task: Task, job: Job) -> Iterator[float]:
    """The mean loss of each epoch; no weight decay.

    With Adam a decay would draw the vectors of rare words, which mostly have no other
    gradient, to zero at the full rate.
    """
    generator = torch.Generator().manual_seed(job.seed)
    optimiser = torch.optim.Adam(reader.parameters(), lr=LEARNING_RATE)
    loss_of = F.mse_loss if task.n_outputs == 1 else F.cross_entropy
    for _ in range(job.effort.epochs):
        total = 0.0
        for words, targets in task.train.batches(BATCH_SIZE, generator):
            loss = loss_of(reader(words), targets)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
            optimiser.step()
            total += len(words) * float(loss.detach())
        yield total / len(task.train)


class _Judge:
    """Scores a network as its weights change, and keeps the time."""

    def __init__(self, job: Job, task: Task, reader: Reader) -> None:
        self._job, self._task = job, task
        self._point: Sample = lambda part, n_draws: point_draws(reader, part)
        self._draws = self._point
        self._counts = (1, 1)
        if job.variant != "none":
            mc = MCDropout(reader, seed=job.seed)
            self._draws = lambda part, n_draws: mc_draws(mc, part, n_draws)
            self._counts = (job.effort.n_draws, job.effort.n_test_draws)
        self._clock = time.process_time()

    def validation(self, epoch: int, loss: float) -> Record:
        part, n_draws = self._task.validation, self._counts[0]
        draws = self._draws(part, n_draws)
        precision = best_precision(self._task, draws)
        found = score(self._task, part, draws, precision)
        point = self._without_masks(part)
        return Record(
            *self._job.key, "validation", epoch, len(part), n_draws, loss, precision,
            found.error, found.log_likelihood, point.error, point.log_likelihood,
            self._seconds(),
        )  # fmt: skip

    def test(self, name: str, last: Record) -> Record:
        part, n_draws = self._task.test, self._counts[1]
        found = score(self._task, part, self._draws(part, n_draws), last.precision)
        point = self._without_masks(part)
        return replace(
            last,
            part=name,
            n_rows=len(part),
            n_draws=n_draws,
            error=found.error,
            log_likelihood=found.log_likelihood,
            point_error=point.error,
            point_log_likelihood=point.log_likelihood,
            seconds=self._seconds(),
        )

    def _without_masks(self, part: Part) -> Score:
        """With a precision of its own."""
        chosen = self._point(self._task.validation, 1)
        precision = best_precision(self._task, chosen)
        return score(self._task, part, self._point(part, 1), precision)

    def _seconds(self) -> float:
        """CPU time since the last question."""
        start, self._clock = self._clock, time.process_time()
        return self._clock - start
