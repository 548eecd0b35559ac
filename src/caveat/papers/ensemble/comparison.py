"""MC dropout and ensembles, scored by passes at test time and by epochs of training."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from caveat.papers.ensemble.networks import Kind, Perceptron
from caveat.papers.lenet import (
    Labelled,
    Score,
    Store,
    drawn_logits,
    grouped,
    load_images,
    standard_log_probs,
)

PLAIN = tuple(Kind((0.0, 0.0, 0.0), penalty) for penalty in (0.0, 1e-5, 1e-4))
DROPOUT = (
    Kind((0.0, 0.1, 0.1), 0.0),
    Kind((0.0, 0.25, 0.25), 0.0),
    Kind((0.1, 0.25, 0.25), 0.0),
    Kind((0.2, 0.5, 0.5), 0.0),
)
N_MEMBERS = 5
MC, STANDARD, LONG, SHORT = (
    "MC dropout",
    "averaged weights",
    "ensemble",
    "short ensemble",
)


@dataclass(frozen=True)
class Effort:
    """How much work to put in.

    Attributes
    ----------
    epochs : int
        Of a network; a short one has a fifth of them.
    n_replicates : int
        Independent repetitions of everything.
    sizes : tuple of int
        Numbers of draws, the largest last.
    n_images : int or None
        Test images; None for all.
    n_train : int or None
        Training images; None for all.
    n_held_out : int
        The last training images, on which settings are chosen.
    """

    epochs: int
    n_replicates: int
    sizes: tuple[int, ...]
    n_images: int | None
    n_train: int | None
    n_held_out: int


@dataclass(frozen=True)
class Result:
    """One way to predict.

    Attributes
    ----------
    part : str
        ``"validation"`` or ``"test"``.
    replicate : int
    method, kind : str
    n_passes : int
        Passes through a network per image.
    epochs : int
        Of training, all networks together.
    n_groups : int
        Groups of draws, or sets of members, that the numbers are averages of.
    error, log_likelihood : float
        Share of wrong labels, and mean log probability of the true class.
    """

    part: str
    replicate: int
    method: str
    kind: str
    n_passes: int
    epochs: int
    n_groups: int
    error: float
    log_likelihood: float


@dataclass(frozen=True)
class Replicate:
    """One dropout network, and two ensembles of plain ones.

    Attributes
    ----------
    number : int
    dropout, plain : Kind
    effort : Effort
    """

    number: int
    dropout: Kind
    plain: Kind
    effort: Effort

    @property
    def single(self) -> Perceptron:
        """The network of MC dropout."""
        return self._net(self.dropout, self.effort.epochs, 0)

    @property
    def long(self) -> list[Perceptron]:
        """Plain networks, each trained as long as that of MC dropout."""
        return self._members(self.effort.epochs)

    @property
    def short(self) -> list[Perceptron]:
        """Plain networks, together trained as long as that of MC dropout."""
        return self._members(self.effort.epochs // N_MEMBERS)

    @property
    def nets(self) -> list[Perceptron]:
        """All networks."""
        return [self.single, *self.long, *self.short]

    def _members(self, epochs: int) -> list[Perceptron]:
        return [self._net(self.plain, epochs, k) for k in range(N_MEMBERS)]

    def _net(self, kind: Kind, epochs: int, member: int) -> Perceptron:
        seed = 100 * (self.number + 1) + member
        return Perceptron(kind, epochs, seed, self.effort.n_train)


def trials(effort: Effort) -> list[Perceptron]:
    """The networks by which drop rates and penalties are chosen."""
    rest = len(load_images().train) - effort.n_held_out
    n_train = min(rest, effort.n_train or rest)
    return [Perceptron(kind, effort.epochs, 0, n_train) for kind in (*PLAIN, *DROPOUT)]


def validate(store: Store, nets: Sequence[Perceptron], effort: Effort) -> list[Result]:
    """Scores on the last training images, which these networks have not seen."""
    held_out = load_images().train.last(effort.n_held_out)
    found = []
    for net in nets:
        if net.kind.has_dropout:
            draws = _draws(store, net, held_out.image, max(effort.sizes))
            answer = (MC, max(effort.sizes), [_average(draws)])
        else:
            answer = ("plain", 1, [_standard(store, net, held_out.image)])
        found.append(_result("validation", 0, net.kind, net.epochs, answer, held_out))
    return found


def best(kinds: Sequence[Kind], validation: Sequence[Result]) -> Kind:
    """The kind with the largest log-likelihood on held-out images."""
    scores = {result.kind: result.log_likelihood for result in validation}
    return max(kinds, key=lambda kind: scores[str(kind)])


def compare(store: Store, replicate: Replicate) -> list[Result]:
    """All ways to predict, of one replicate."""
    test = load_images().test.first(replicate.effort.n_images)
    return [*_of_draws(store, replicate, test), *_of_members(store, replicate, test)]


def _of_draws(store: Store, own: Replicate, test: Labelled) -> Iterator[Result]:
    epochs, sizes = own.effort.epochs, own.effort.sizes
    standard = (STANDARD, 1, [_standard(store, own.single, test.image)])
    yield _result("test", own.number, own.dropout, epochs, standard, test)
    draws = _draws(store, own.single, test.image, max(sizes))
    for size in sizes:
        answer = (MC, size, list(grouped(draws, size)))
        yield _result("test", own.number, own.dropout, epochs, answer, test)


def _of_members(store: Store, own: Replicate, test: Labelled) -> Iterator[Result]:
    for method, nets in ((LONG, own.long), (SHORT, own.short)):
        members = torch.stack([_standard(store, net, test.image) for net in nets])
        for size in range(1, N_MEMBERS + 1):
            sets = combinations(range(N_MEMBERS), size)
            answer = (method, size, [_average(members[list(s)]) for s in sets])
            epochs = size * nets[0].epochs
            yield _result("test", own.number, own.plain, epochs, answer, test)


def _result(
    part: str,
    replicate: int,
    kind: Kind,
    epochs: int,
    answer: tuple[str, int, list[Tensor]],
    data: Labelled,
) -> Result:
    method, n_passes, groups = answer
    scores = [Score.of(group, data.label) for group in groups]
    return Result(
        part,
        replicate,
        method,
        str(kind),
        n_passes,
        epochs,
        len(groups),
        float(np.mean([score.error for score in scores])),
        float(np.mean([score.log_likelihood for score in scores])),
    )


def _standard(store: Store, net: Perceptron, image: Tensor) -> Tensor:
    return standard_log_probs(store.load(net), image)


def _draws(store: Store, net: Perceptron, image: Tensor, n_draws: int) -> Tensor:
    logits = drawn_logits(store.load(net), image, n_draws=n_draws, seed=net.seed)
    return logits.double().log_softmax(-1)


def _average(log_probs: Tensor) -> Tensor:
    """Log of the averaged probabilities over the first axis."""
    return next(grouped(log_probs, len(log_probs)))
