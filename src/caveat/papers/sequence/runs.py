"""One network trained, and scored after every epoch."""

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from caveat.papers.sequence.networks import Reader, make_reader
from caveat.papers.sequence.scores import best_precision, mc_draws, point_draws, score
from caveat.papers.sequence.texts import N_WORDS, Texts, TextTask, load_task
from caveat.sampling.mcdropout import MCDropout
from caveat.training.generators import OwnGenerators

BATCH_SIZE = 128
LEARNING_RATE = 2e-3


@dataclass(frozen=True)
class ReaderEffort:
    """How much is run."""

    epochs: int
    n_draws: int  # after each epoch
    n_test_draws: int
    most_rows: int | None = None  # of each part; None takes all

    def draws(self, variant: str) -> tuple[int, int]:
        """After each epoch and on test rows; without masks there is one."""
        return (1, 1) if variant == "none" else (self.n_draws, self.n_test_draws)


class ReaderJob(NamedTuple):
    """A network to train."""

    task: str
    variant: str
    drop_rate: float
    seed: int


@dataclass(frozen=True)
class ReaderRecord:
    """Scores of one network after one epoch.

    The part is ``"validation"`` after each epoch; ``"test"`` after the last one; and
    ``"test_stopped"`` after the one with the best validation log-likelihood.
    """

    task: str
    variant: str
    drop_rate: float
    seed: int
    part: str
    epoch: int  # from 1
    n_rows: int
    n_draws: int
    train_loss: float  # mean over the epoch, with masks, of standardised ratings
    precision: float  # of ratings, chosen on the validation rows; 1 for sentiment
    error: float  # by draws; of a network without masks, by its one output
    log_likelihood: float
    point_error: float  # with masks switched off
    point_log_likelihood: float
    seconds: float  # CPU time of the epoch and its scores

    @property
    def job(self) -> ReaderJob:
        """The network."""
        return ReaderJob(self.task, self.variant, self.drop_rate, self.seed)


def run_job(job: ReaderJob, effort: ReaderEffort) -> list[ReaderRecord]:
    """Train one network; torch's own generator is left alone.

    Records are those of the validation rows after each epoch, then of the test rows.
    """
    task = load_task(job.task, effort.most_rows)
    own = OwnGenerators(job.seed)
    with own:
        reader = make_reader(job.variant, job.drop_rate, (N_WORDS, task.n_outputs))
    losses = _train(reader, task, job.seed, effort.epochs, own)
    return list(_run(_Judge(job, effort, task, reader), losses))


def _run(judge: "_Judge", losses: Iterator[float]) -> Iterator[ReaderRecord]:
    best: tuple[ReaderRecord, dict[str, Tensor]] | None = None
    for epoch, loss in enumerate(losses, start=1):
        last = judge.validation(epoch, loss)
        yield last
        if best is None or last.log_likelihood > best[0].log_likelihood:
            best = last, copy.deepcopy(judge.reader.state_dict())
    assert best is not None
    tested = judge.test("test", last)
    yield tested
    if best[0].epoch == last.epoch:
        yield replace(tested, part="test_stopped", seconds=0.0)
        return
    judge.reader.load_state_dict(best[1])
    yield judge.test("test_stopped", best[0])


def _train(
    reader: Reader, task: TextTask, seed: int, epochs: int, own: OwnGenerators
) -> Iterator[float]:
    """The mean loss of each epoch, with masks of ``own``; no weight decay.

    With Adam a decay would draw the vectors of rare words, which mostly have no other
    gradient, to zero at the full rate.
    """
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(reader.parameters(), lr=LEARNING_RATE)
    loss_of = F.mse_loss if task.n_outputs == 1 else F.cross_entropy
    for _ in range(epochs):
        total = 0.0
        for words, targets in task.train.batches(BATCH_SIZE, generator):
            with own:
                outputs = reader(words)
            loss = loss_of(outputs, targets)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
            optimiser.step()
            total += len(words) * float(loss.detach())
        yield total / len(task.train)


class _Judge:
    """Scores a network as its weights change, and keeps the time."""

    def __init__(
        self, job: ReaderJob, effort: ReaderEffort, task: TextTask, reader: Reader
    ) -> None:
        self.reader = reader
        self._job, self._task = job, task
        masked = job.variant != "none"
        self._mc = MCDropout(reader, seed=job.seed) if masked else None
        self._n_draws, self._n_test_draws = effort.draws(job.variant)
        self._clock = time.process_time()

    def validation(self, epoch: int, loss: float) -> ReaderRecord:
        part = self._task.validation
        draws = self._draws(part, self._n_draws)
        state = epoch, loss, best_precision(self._task, draws)
        return self._record("validation", part, draws, state)

    def test(self, name: str, last: ReaderRecord) -> ReaderRecord:
        part = self._task.test
        draws = self._draws(part, self._n_test_draws)
        state = last.epoch, last.train_loss, last.precision
        return self._record(name, part, draws, state)

    def _record(
        self, name: str, part: Texts, draws: Tensor, state: tuple[int, float, float]
    ) -> ReaderRecord:
        """Without masks with a precision of its own."""
        epoch, loss, precision = state
        known = point_draws(self.reader, self._task.validation)
        chosen = best_precision(self._task, known)
        found = score(self._task, part, draws, precision)
        point = score(self._task, part, point_draws(self.reader, part), chosen)
        return ReaderRecord(
            *self._job, name, epoch, len(part), len(draws), loss, precision,
            *found, *point, self._seconds(),
        )  # fmt: skip

    def _draws(self, part: Texts, n_draws: int) -> Tensor:
        if self._mc is None:
            return point_draws(self.reader, part)
        return mc_draws(self._mc, part, n_draws)

    def _seconds(self) -> float:
        """CPU time since the last question."""
        start, self._clock = self._clock, time.process_time()
        return self._clock - start
