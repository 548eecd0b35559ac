"""MC dropout and ensembles, scored by passes at test time and by length of training."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from caveat.papers.ensemble.networks import Kind, NetworkJob
from caveat.papers.lenet import (
    Images,
    LabelScore,
    drawn_logits,
    grouped,
    standard_log_probs,
)

N_MEMBERS = 5
MC, STANDARD, SINGLE = "MC dropout", "averaged weights", "plain"
LONG, SHORT = "ensemble", "short ensemble"
VALIDATION, TEST = "validation", "test"


@dataclass(frozen=True)
class EnsembleEffort:
    """How much work to put into one kind of network."""

    length: int  # epochs of a perceptron, steps of a LeNet; short ones have a fifth
    n_replicates: int  # independent repetitions of everything
    sizes: tuple[int, ...]  # numbers of draws, the largest last
    n_images: int | None  # to test on; None for all
    n_train: int | None  # to train on; None for all
    n_held_out: int  # the last training images, on which settings are chosen
    n_tried: int  # networks of each setting, to choose by
    n_tried_draws: int  # of each of these


@dataclass(frozen=True)
class Result:
    """One way to predict."""

    network: str
    part: str  # "validation" or "test"
    replicate: int
    method: str
    early_rate: float
    late_rate: float
    l2_penalty: float
    n_passes: int  # through a network, per image
    length: int  # of training, all networks together
    n_groups: int  # of draws, or sets of members, that the numbers are averages of
    error: float  # share of wrong labels
    log_likelihood: float  # mean log probability of the true class
    seconds: float  # CPU time of the job, shared out over its results

    @property
    def kind(self) -> Kind:
        """Of network."""
        rates = self.early_rate, self.late_rate
        return Kind(self.network, *rates, self.l2_penalty)


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

    def nets(self, images: Images, effort: EnsembleEffort) -> list[NetworkJob]:
        """The networks; those to be tried do not see the images held out."""
        if self.part == VALIDATION:
            rest = len(images.train) - effort.n_held_out
            n_train = min(rest, effort.n_train or rest)
            return [NetworkJob(self.kind, effort.length, self.replicate, n_train)]
        length = effort.length // (N_MEMBERS if self.method == SHORT else 1)
        first = 100 * (self.replicate + 1)
        count = 1 if self.method == MC else N_MEMBERS
        seeds = range(first, first + count)
        return [NetworkJob(self.kind, length, s, effort.n_train) for s in seeds]

    def ways(self, effort: EnsembleEffort) -> list[tuple[str, int]]:
        """The ways to predict that it compares: methods, with numbers of passes."""
        if self.part == VALIDATION:
            return [(self.method, effort.n_tried_draws if self.method == MC else 1)]
        if self.method == MC:
            return [(STANDARD, 1), *((MC, size) for size in effort.sizes)]
        return [(self.method, size) for size in range(1, N_MEMBERS + 1)]


def trials(kinds: Iterable[Kind], n_tried: int) -> list[EnsembleJob]:
    """The networks by which kinds are compared, so many of each."""
    return [
        EnsembleJob(VALIDATION, k, SINGLE if kind.is_plain else MC, kind)
        for kind in kinds
        for k in range(n_tried)
    ]


def scores(results: Sequence[Result], n_tried: int) -> dict[Kind, float]:
    """Average log-likelihoods on held-out images, of kinds with all their networks.

    To the digits that the file keeps, so that a search that is gone on with takes the
    same road.
    """
    found = defaultdict(list)
    for result in results:
        if result.part == VALIDATION:
            found[result.kind].append(float(f"{result.log_likelihood:.6g}"))
    return {
        kind: float(np.mean(own)) for kind, own in found.items() if len(own) >= n_tried
    }


def run_job(job: EnsembleJob, images: Images, effort: EnsembleEffort) -> list[Result]:
    """Train and score the networks of a job, in all its ways to predict."""
    start = time.process_time()
    held_out, test = images.train.last(effort.n_held_out), images.test
    data = held_out if job.part == VALIDATION else test.first(effort.n_images)
    nets, ways = job.nets(images, effort), job.ways(effort)
    answers = _Answers(nets, images, data.image, max(n for _, n in ways))
    found = []
    for method, n_passes in ways:
        groups = answers.draws(n_passes) if method == MC else answers.members(n_passes)
        own = [LabelScore.of(group, data.label) for group in groups]
        found.append(_result(job, nets[0].length, (method, n_passes), own))
    seconds = (time.process_time() - start) / len(ways)
    return [replace(result, seconds=seconds) for result in found]


def _result(
    job: EnsembleJob, length: int, way: tuple[str, int], own: Sequence[LabelScore]
) -> Result:
    """The average of some scores; how long it took is not known yet."""
    (method, n_passes), kind = way, job.kind
    return Result(
        network=kind.network,
        part=job.part,
        replicate=job.replicate,
        method=method,
        early_rate=kind.early_rate,
        late_rate=kind.late_rate,
        l2_penalty=kind.l2_penalty,
        n_passes=n_passes,
        length=length * (1 if method == MC else n_passes),
        n_groups=len(own),
        error=float(np.mean([score.error for score in own])),
        log_likelihood=float(np.mean([score.log_likelihood for score in own])),
        seconds=0.0,
    )


class _Answers:
    """Log probabilities (images, classes) by the networks of a job."""

    def __init__(
        self, nets: Sequence[NetworkJob], images: Images, image: Tensor, n_draws: int
    ) -> None:
        self._image, self._n_draws, self._seed = image, n_draws, nets[0].seed
        self._nets = [net.run(images) for net in nets]

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
