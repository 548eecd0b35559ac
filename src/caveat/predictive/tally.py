"""Everything counted about the logits of a classifier, in one pass over blocks.

Labels are sampled with one uniform number per draw, shared by all rows and stratified
over draws: each row's labels have the right distribution, rows use common random
numbers, and the answer for a row depends neither on the other rows nor on how draws
were cut into blocks.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import NamedTuple, Self, final

import torch
from torch import Tensor

from caveat import _validation
from caveat._random import stream_key
from caveat._strata import stratified_uniform
from caveat.predictive.moments import (
    Moments,
    blocks,
    merge,
    wide_dtype,
    working_dtype,
)
from caveat.predictive.softmax import log_softmax

_FEW = 1 << 10  # numbers
_LOG_OF_ZERO = -1e4  # finite; exp of it is 0 in every type
TINY = 1e-30  # sums of probabilities from here on have all their digits


class Averages(NamedTuple):
    """What most people ask for; all but ``entropy`` (batch, *extra, classes)."""

    n_draws: int
    probs: Tensor  # their mean over draws
    log_probs: Tensor  # the log of it, without underflow
    entropy: Tensor  # the mean of the entropies of the draws; shape: (batch, *extra)

    @classmethod
    def of(cls, logits: Tensor) -> Self:
        """From logits (draws, batch, *extra, classes)."""
        total: _Sums | None = None
        for block in blocks(logits):
            sums = _Sums.of(block)
            total = sums if total is None else total.merge(sums)
        assert total is not None  # there is a draw
        _check(total.entropy, logits)
        n = len(logits)
        log_probs = total.log_sum - math.log(n)
        return cls(n, total.probs / n, log_probs, total.entropy / n)


class _Sums(NamedTuple):
    """Sums over draws."""

    probs: Tensor
    log_sum: Tensor
    entropy: Tensor

    @classmethod
    def of(cls, block: Tensor) -> Self:
        wide = wide_dtype(block.device)
        _, log_probs, probs, entropies = _read(block)
        total = probs.sum(0, dtype=wide)
        underflows = not float(total.amin()) > TINY
        log_sum = log_probs.logsumexp(0).to(wide) if underflows else total.log()
        return cls(total, log_sum, entropies.sum(0, dtype=wide))

    def merge(self, other: Self) -> Self:
        return type(self)(
            self.probs + other.probs,
            torch.logaddexp(self.log_sum, other.log_sum),
            self.entropy + other.entropy,
        )


@final
@dataclass(frozen=True, eq=False)
class Tally:
    """Sums over draws; tensors of shape (batch, *extra, classes) but ``entropy``."""

    probs: Moments
    logits: Moments  # with 0 for a logit of -inf
    log_sum: Tensor  # log of the sum of probabilities, without underflow
    entropy: Tensor  # sum of the entropies of the draws; shape: (batch, *extra)
    sampled: Tensor  # how often a label sampled from the draw was this class
    favoured: Tensor  # how often this class was the most probable
    masked: Tensor  # how often the logit was -inf

    @classmethod
    def of(
        cls,
        logits: Tensor,
        *,
        seed: int,
        first_draw: int = 0,
        watch: Callable[[Tensor, Tensor], None] | None = None,
    ) -> Self:
        """From logits (draws, batch, *extra, classes), numbered from ``first_draw``.

        ``watch`` is shown the probabilities and entropies of all draws, in order.
        """
        parts = list(blocks(logits.detach()))  # views, not copies
        starts = accumulate(map(len, parts), initial=first_draw)
        tallies = (
            cls._of_block(block, _uniforms(seed, start, block), watch)
            for start, block in zip(starts, parts, strict=False)
        )
        total = reduce(cls.merge, tallies)
        _check(total.entropy, logits)
        return total

    def merge(self, other: Self) -> Self:
        """Both sets of draws together."""
        return type(self)(
            merge(self.probs, other.probs),
            merge(self.logits, other.logits),
            torch.logaddexp(self.log_sum, other.log_sum),
            self.entropy + other.entropy,
            self.sampled + other.sampled,
            self.favoured + other.favoured,
            self.masked + other.masked,
        )

    @classmethod
    def _of_block(
        cls,
        block: Tensor,
        uniforms: Tensor,
        watch: Callable[[Tensor, Tensor], None] | None,
    ) -> Self:
        wide = wide_dtype(block.device)
        logits, log_probs, probs, entropies = _read(block)
        if watch is not None:
            watch(probs, entropies)
        entropy = entropies.sum(0, dtype=wide)
        masked = logits.isneginf()
        return cls(
            Moments.of(probs),
            Moments.of(logits.masked_fill(masked, 0.0)),
            log_probs.logsumexp(0).to(wide),
            entropy,
            _count(sampled_labels(probs, uniforms), probs.shape[-1]),
            _count(logits.argmax(-1), probs.shape[-1]),
            masked.sum(0, dtype=torch.int32),
        )


def _read(block: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Logits of some draws, the logs of their probabilities, those, and entropies."""
    logits = block.to(working_dtype(block.dtype))
    log_probs = log_softmax(logits)
    probs = log_probs.exp()
    return logits, log_probs, probs, entropies_of(probs, log_probs)


def entropies_of(probs: Tensor, log_probs: Tensor) -> Tensor:
    """Of distributions on the last axis."""
    # E9, one term each: H(p_t) = -sum_c p_tc log p_tc, with 0 log 0 = 0
    if probs.numel() <= _FEW:  # another logarithm costs less than other operations
        return torch.special.entr(probs).sum(-1)
    return -(probs * log_probs.clamp_min(_LOG_OF_ZERO)).sum(-1)


def _check(entropy: Tensor, logits: Tensor) -> None:
    """NaN, +inf, or -inf for all classes is an error; all of it reaches the sums."""
    if math.isnan(float(entropy if entropy.numel() == 1 else entropy.sum())):
        _validation.finite_draws("The logits of a model", _unusable(logits))


def _unusable(logits: Tensor) -> Tensor:
    """Where the logits of a draw are no distribution; shape (draws, batch, *extra)."""
    top = logits.amax(-1)  # NaN if any is
    return ~top.isfinite()


def _uniforms(seed: int, start: int, block: Tensor) -> Tensor:
    draws = range(start, start + len(block))
    uniforms = stratified_uniform(stream_key(seed, "labels"), draws, (1,))
    uniforms = uniforms.to(block.device, working_dtype(block.dtype))
    return uniforms.view(-1, *[1] * (block.ndim - 1))  # shape: (draws, 1, …, 1)


def sampled_labels(probs: Tensor, uniforms: Tensor) -> Tensor:
    """The first class whose cumulative probability reaches the uniform number.

    ``probs`` (…, classes) and ``uniforms`` (…, 1) broadcast; the result is (…).
    """
    # E11: label_t = min{c: p_t1 + … + p_tc >= u_t}
    cumulative = probs.cumsum(-1)
    # The last sum, not 1, is the top: rounding must not reach a class of probability 0.
    return (cumulative < uniforms * cumulative[..., -1:]).sum(-1)


def _count(labels: Tensor, n_classes: int) -> Tensor:
    """How often each class is in ``labels`` (draws, …); shape (…, classes)."""
    labels = labels.movedim(0, -1)
    shape, device = (*labels.shape[:-1], n_classes), labels.device
    counts = torch.zeros(shape, dtype=torch.int32, device=device)
    return counts.scatter_add(-1, labels, counts.new_ones(()).expand_as(labels))
