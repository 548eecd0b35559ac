"""MC dropout and ensembles, scored by passes at test time and by epochs of training."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from caveat.papers.ensemble.networks import Kind, Perceptron
from caveat.papers.lenet import (
    Images,
    LabelScore,
    NetStore,
    drawn_logits,
    grouped,
    standard_log_probs,
)

PENALTIES = (0.0, 1e-5, 1e-4)
PLAIN = tuple(Kind((0.0, 0.0, 0.0), penalty) for penalty in PENALTIES)
DROPOUT = (
    Kind((0.0, 0.1, 0.1), 0.0),
    Kind((0.0, 0.25, 0.25), 0.0),
    Kind((0.1, 0.25, 0.25), 0.0),
    Kind((0.2, 0.5, 0.5), 0.0),
)
N_MEMBERS = 5
MC, STANDARD, SINGLE = "MC dropout", "averaged weights", "plain"
LONG, SHORT = "ensemble", "short ensemble"


@dataclass(frozen=True)
class EnsembleEffort:
    """How much work to put in."""

    epochs: int  # of a network; a short one has a fifth of them
    n_replicates: int  # independent repetitions of everything
    sizes: tuple[int, ...]  # numbers of draws, the largest last
    n_images: int | None  # to test on; None for all
    n_train: int | None  # to train on; None for all
    n_held_out: int  # the last training images, on which settings are chosen
    n_tried: int  # networks of each setting, to choose by


@dataclass(frozen=True)
class Result:
    """One way to predict."""

    part: str  # "validation" or "test"
    replicate: int
    method: str
    kind: str
    n_passes: int  # through a network, per image
    epochs: int  # of training, all networks together
    n_groups: int  # of draws, or sets of members, that the numbers are averages of
    error: float  # share of wrong labels
    log_likelihood: float  # mean log probability of the true class


@dataclass(frozen=True)
class EnsembleJob:
    """Networks to train and to ask: tried on held-out images, or tested.

    MC dropout has one network. Those of the ensemble are plain and trained as long,
    each of them; those of the short ensemble together.
    """

    part: str
    replicate: int
    method: str
    kind: Kind

    def nets(self, images: Images, effort: EnsembleEffort) -> list[Perceptron]:
        """The networks; those to be tried do not see the images held out."""
        if self.part == "validation":
            rest = len(images.train) - effort.n_held_out
            n_train = min(rest, effort.n_train or rest)
            return [Perceptron(self.kind, effort.epochs, self.replicate, n_train)]
        epochs = effort.epochs // (N_MEMBERS if self.method == SHORT else 1)
        first = 100 * (self.replicate + 1)
        count = 1 if self.method == MC else N_MEMBERS
        seeds = range(first, first + count)
        return [Perceptron(self.kind, epochs, s, effort.n_train) for s in seeds]

    def ways(self, effort: EnsembleEffort) -> list[tuple[str, int]]:
        """The ways to predict that it compares: methods, with numbers of passes."""
        if self.part == "validation":
            return [(self.method, max(effort.sizes) if self.method == MC else 1)]
        if self.method == MC:
            return [(STANDARD, 1), *((MC, size) for size in effort.sizes)]
        return [(self.method, size) for size in range(1, N_MEMBERS + 1)]


def trials(n_tried: int) -> list[EnsembleJob]:
    """The networks by which drop rates and penalties are chosen, so many of each."""
    methods = [(SINGLE, kind) for kind in PLAIN] + [(MC, kind) for kind in DROPOUT]
    return [
        EnsembleJob("validation", k, *method)
        for method in methods
        for k in range(n_tried)
    ]


def best(kinds: Sequence[Kind], validation: Sequence[Result]) -> Kind:
    """The kind with the largest log-likelihood on held-out images, on average."""

    def score(kind: Kind) -> float:
        own = [r.log_likelihood for r in validation if r.kind == str(kind)]
        return float(np.mean(own))

    return max(kinds, key=score)


def is_at_end(kind: Kind) -> bool:
    """Whether the search might have gone on beyond; rates and penalties of 0 cannot."""
    if kind in PLAIN:
        return kind.l2_penalty == max(PENALTIES)
    hidden, all_hidden = kind.drop_rates[-1], [k.drop_rates[-1] for k in DROPOUT]
    return hidden in (min(all_hidden), max(all_hidden))


def run_job(
    job: EnsembleJob, store: NetStore, images: Images, effort: EnsembleEffort
) -> list[Result]:
    """Train and score the networks of a job, in all its ways to predict."""
    held_out, test = images.train.last(effort.n_held_out), images.test
    data = held_out if job.part == "validation" else test.first(effort.n_images)
    nets = job.nets(images, effort)
    answers = _Answers(store, nets, data.image, max(effort.sizes))
    found = []
    for method, n_passes in job.ways(effort):
        groups = answers.draws(n_passes) if method == MC else answers.members(n_passes)
        scores = [LabelScore.of(group, data.label) for group in groups]
        n_nets = 1 if method == MC else n_passes
        found.append(
            Result(
                *(job.part, job.replicate, method, str(job.kind), n_passes),
                n_nets * nets[0].epochs,
                len(scores),
                float(np.mean([score.error for score in scores])),
                float(np.mean([score.log_likelihood for score in scores])),
            )
        )
    return found


class _Answers:
    """Log probabilities (images, classes) by the networks of a job."""

    def __init__(
        self, store: NetStore, nets: Sequence[Perceptron], image: Tensor, n_draws: int
    ) -> None:
        self._image, self._n_draws, self._seed = image, n_draws, nets[0].seed
        self._nets = [store.get(net) for net in nets]

    def draws(self, size: int) -> Iterator[Tensor]:
        """By disjoint groups of so many draws of the first network."""
        return grouped(self._draws, size)

    def members(self, size: int) -> Iterator[Tensor]:
        """By all sets of so many networks, with averaged weights."""
        for chosen in combinations(self._members, size):
            yield from grouped(torch.stack(chosen), size)

    @cached_property
    def _draws(self) -> Tensor:
        logits = drawn_logits(
            self._nets[0], self._image, n_draws=self._n_draws, seed=self._seed
        )
        return logits.double().log_softmax(-1)

    @cached_property
    def _members(self) -> list[Tensor]:
        return [standard_log_probs(net, self._image) for net in self._nets]
