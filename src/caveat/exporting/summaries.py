"""What a graph answers: sums that are carried from draw to draw, and what they tell.

The formulas are those of ``caveat.predictive``, on tensors whose number of draws only a
run knows: ``Moments`` (merged as there), ``_entropies``, and the quantiles of a mixture
of Gaussians, by cutting an interval.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from caveat.errors import ParameterError
from caveat.exporting.hashing import normal_quantile
from caveat.predictive.moments import working_dtype

State = tuple[Tensor, ...]

DRAWS = "draws"
_INTERVAL = ("lower", "upper")
# An interval some standard deviations wide is cut into so many parts, so many times.
_CUTS, _ROUNDS = 8, 9

_UNKNOWN = """outputs must name some of {regression}; or, of a classifier, some of
{classes}; or {draws!r}, with either. Got {got}."""


@dataclass(frozen=True)
class DrawSummary(ABC):
    """What is asked of the draws of an output.

    Attributes
    ----------
    wanted : tuple of str
        Names of the answers, in order.
    dtype : torch.dtype
        In which they are given.
    """

    wanted: tuple[str, ...]
    dtype: torch.dtype

    @property
    @abstractmethod
    def meanings(self) -> Mapping[str, str]:
        """What each answer is, in words."""

    @abstractmethod
    def of_output(self, block: Tensor) -> Tensor:
        """What the model returns, (draws, batch, ...), as it is summed up."""

    @abstractmethod
    def initial(self, shape: Sequence[Any]) -> State:
        """The sums of no draws, of an output of this shape."""

    @abstractmethod
    def sums(self, block: Tensor) -> State:
        """The sums of a block of draws."""

    @abstractmethod
    def answers(self, state: State) -> dict[str, Tensor]:
        """All that the sums tell."""

    @property
    def merges_moments(self) -> bool:
        """Whether sums are a count, a mean and a scatter, not just sums."""
        return False

    @property
    def keeps_draws(self) -> bool:
        """Whether the draws themselves are carried."""
        return bool({DRAWS, *_INTERVAL} & set(self.wanted))

    def empty(self, shape: Sequence[Any], dtype: torch.dtype) -> State:
        """All that is carried before the first draw."""
        kept = (torch.zeros((0, *shape), dtype=dtype),) if self.keeps_draws else ()
        return (*self.initial(shape), *kept)

    def of_block(self, block: Tensor) -> State:
        """All that is carried of a block of draws."""
        return (*self.sums(block), *((block,) if self.keeps_draws else ()))

    def merged(self, left: State, right: State) -> State:
        """All that is carried of two blocks; ``onnx_graph.py`` writes the same."""
        if not self.keeps_draws:
            return self.merged_sums(left, right)
        kept = torch.cat([left[-1], right[-1]])
        return (*self.merged_sums(left[:-1], right[:-1]), kept)

    def merged_sums(self, left: State, right: State) -> State:
        """The sums of two blocks of draws."""
        return tuple(one + other for one, other in zip(left, right, strict=True))

    def told(self, state: State) -> tuple[Tensor, ...]:
        """The answers that are wanted."""
        sums, kept = (state[:-1], state[-1]) if self.keeps_draws else (state, None)
        found = self.answers(sums)
        if kept is not None:
            found |= self.of_draws(kept)
        return tuple(found[name] for name in self.wanted)

    def of_draws(self, kept: Tensor) -> dict[str, Tensor]:
        """What only the draws themselves tell."""
        return {DRAWS: kept}


@final
@dataclass(frozen=True)
class RegressionSummary(DrawSummary):
    """Mean and spread of the draws; with a precision, those of new observations.

    Attributes
    ----------
    precision : Tensor or None
        tau, one number or one per output.
    level : float
        Probability between ``lower`` and ``upper``.
    pools_members : bool
        The model returns (batch, members, ...), and all of them are draws.
    has_head : bool
        Behind the members there are two: mean, and variance of the noise.
    noise_scale : float
        Factor on these variances.
    is_vector : bool
        There is one output, and no axis for it.
    """

    precision: Tensor | None = None
    level: float = 0.95
    pools_members: bool = False
    has_head: bool = False
    noise_scale: float = 1.0
    is_vector: bool = False

    def __post_init__(self) -> None:
        if set(_INTERVAL) & set(self.wanted) and self.precision is None:
            raise ParameterError(
                'outputs "lower" and "upper" need precision=tau, the inverse variance '
                "of the noise in y, as regress does. Got none."
            )

    @property
    def meanings(self) -> Mapping[str, str]:
        is_plain = self.precision is None and not self.has_head
        noise = "" if is_plain else ", and of the noise of observations"
        return {
            "mean": "mean over the draws",
            "std": f"standard deviation of the draws{noise}",
            "variance": f"variance of the draws{noise}",
            "epistemic_variance": "variance of the draws",
            "lower": f"lower end of the central interval of level {self.level:g}",
            "upper": f"upper end of the central interval of level {self.level:g}",
            DRAWS: "outputs of the draws, (draws, batch, ...)",
        }

    @property
    def merges_moments(self) -> bool:
        return True

    def of_output(self, block: Tensor) -> Tensor:
        block = pooled(block) if self.pools_members else block
        return block.squeeze(-1) if self.is_vector else block

    def initial(self, shape: Sequence[Any]) -> State:
        own = [shape[0], *shape[2:]] if self.has_head else list(shape)
        zeros = [torch.zeros(own, dtype=torch.float64) for _ in range(3)]
        count = torch.zeros((), dtype=torch.float64)
        return (count, *zeros[: 3 if self.has_head else 2])

    def sums(self, block: Tensor) -> State:
        block = block.to(torch.float64)
        noise: State = ()
        if self.has_head:
            block, noise = block[:, :, 0], (block[:, :, 1].sum(0),)
        mean = block.mean(0)
        gap = block - mean
        # A power of 2 takes ONNX Runtime several times as long as a product.
        return (_count(block), mean, (gap * gap).sum(0), *noise)

    def merged_sums(self, left: State, right: State) -> State:
        count, mean, scatter, *noise = left
        own_count, own_mean, own_scatter, *own_noise = right
        total = count + own_count
        share, gap = own_count / total, own_mean - mean
        scatter = scatter + (own_scatter + gap * gap * (count * share))
        noises = tuple(a + b for a, b in zip(noise, own_noise, strict=True))
        return (total, mean + gap * share, scatter, *noises)

    def answers(self, state: State) -> dict[str, Tensor]:
        count, mean, scatter, *noise = state
        epistemic = scatter / count
        variance = epistemic
        if self.precision is not None:
            variance = variance + self.precision.to(torch.float64).reciprocal()
        if noise:
            variance = variance + noise[0] * (self.noise_scale / count)
        found = {
            "mean": mean * (count / count),  # of no draws there is none: NaN, not 0
            "std": variance.sqrt(),
            "variance": variance,
            "epistemic_variance": epistemic,
        }
        return {name: value.to(self.dtype) for name, value in found.items()}

    def of_draws(self, kept: Tensor) -> dict[str, Tensor]:
        found = super().of_draws(kept[:, :, 0] if self.has_head else kept)
        if set(_INTERVAL) & set(self.wanted):
            found |= self._interval(kept)
        return found

    def _interval(self, kept: Tensor) -> dict[str, Tensor]:
        assert self.precision is not None
        ends = mixture_interval(kept, self.precision, self.level).to(self.dtype)
        return {"lower": ends[0], "upper": ends[1]}


@final
@dataclass(frozen=True)
class ClassSummary(DrawSummary):
    """Averaged probabilities of the classes, and how far the draws agree.

    Attributes
    ----------
    kind : str
        What the numbers are, as in ``classify(output=...)``.
    class_axis : int or None
        The axis of the classes in what the model returns; None if it has none.
    pools_members : bool
        The model returns (batch, members, classes), and all of them are draws.
    """

    kind: str = "logits"
    class_axis: int | None = 1
    pools_members: bool = False

    @property
    def meanings(self) -> Mapping[str, str]:
        return {
            "probs": "probabilities of the classes, averaged over the draws",
            "entropy": "entropy of the averaged probabilities, in nats",
            "expected_entropy": "entropy of the probabilities of a draw, averaged",
            "mutual_information": "entropy less expected entropy, in nats",
            "label": "number of the most probable class",
            DRAWS: "logits of the draws, (draws, batch, ..., classes)",
        }

    def of_output(self, block: Tensor) -> Tensor:
        block = pooled(block) if self.pools_members else block
        if self.kind in ("logit", "sigmoid"):
            one = (
                block if self.class_axis is None else block.squeeze(self.class_axis + 1)
            )
            if self.kind == "logit":
                return torch.stack([torch.zeros_like(one), one], -1)
            return torch.stack([torch.log(1.0 - one), one.log()], -1)
        assert self.class_axis is not None
        last = block.movedim(self.class_axis + 1, -1)
        return last.log() if self.kind == "probs" else last

    def initial(self, shape: Sequence[Any]) -> State:
        wide = torch.float64
        count = torch.zeros((), dtype=wide)
        return (
            count,
            torch.zeros(shape, dtype=wide),
            torch.zeros(shape[:-1], dtype=wide),
        )

    def sums(self, block: Tensor) -> State:
        logs = block.to(torch.float64).log_softmax(-1)
        own = logs.exp()
        # 0 log 0 is 0, also for a class that a logit of -inf masks.
        own_entropy = -torch.where(own > 0, own * logs, torch.zeros_like(own)).sum(-1)
        return _count(block), own.sum(0), own_entropy.sum(0)

    def answers(self, state: State) -> dict[str, Tensor]:
        count, probs, entropies = state
        probs = probs / count
        safe = torch.where(probs > 0, probs, torch.ones_like(probs))
        most = math.log(probs.shape[-1])
        entropy = (-(probs * safe.log()).sum(-1)).clamp(0.0, most)
        expected = torch.minimum(entropies / count, entropy)
        found = {
            "probs": probs,
            "entropy": entropy,
            "expected_entropy": expected,
            "mutual_information": entropy - expected,
        }
        answers = {name: value.to(self.dtype) for name, value in found.items()}
        return {**answers, "label": probs.argmax(-1)}


def mixture_interval(means: Tensor, precision: Tensor, level: float) -> Tensor:
    """Where the distribution function of a mixture of Gaussians has two values.

    Parameters
    ----------
    means : Tensor, shape (draws, batch, ...)
        Of the components.
    precision : Tensor
        One number, one per output, or one per draw, row and output.
    level : float
        Probability between the two.

    Returns
    -------
    Tensor, shape (2, batch, ...), float64
    """
    below = (1.0 - level) / 2.0
    edge = float(normal_quantile(torch.tensor(below, dtype=torch.float64)))
    # Short numbers suffice around the mean, whatever that is.
    centre = means.to(torch.float64).mean(0)
    draws = (means.to(torch.float64) - centre).to(torch.float32)
    root = precision.to(torch.float32).sqrt()
    # At the smallest of the draws' own quantiles no draw is above its own.
    ends = torch.stack([draws + edge / root, draws - edge / root])
    low, high = ends.amin(1), ends.amax(1)
    levels = torch.tensor([below, 1.0 - below]).view(-1, *[1] * (means.dim() - 1))
    root = root / math.sqrt(2.0)
    step = torch.arange(1, _CUTS).view(-1, *[1] * (means.dim() + 1)) / _CUTS
    for _ in range(_ROUNDS):
        width = high - low
        at = low.unsqueeze(1) + width.unsqueeze(1) * step
        below_it = (torch.erf((at - draws) * root).mean(2) + 1.0) / 2.0 < levels
        low = low + width * (below_it.to(torch.float32).sum(0) / _CUTS)
        high = low + width / _CUTS
    return ((low + high) / 2.0).to(torch.float64) + centre


def pooled(block: Tensor) -> Tensor:
    """(draws, batch, members, ...) as draws, members taking turns."""
    return block.movedim(2, 1).flatten(0, 1)


def _count(block: Tensor) -> Tensor:
    """How many draws there are, as a number of the graph."""
    return torch.ones(block.shape[:1], dtype=torch.float64).sum()


REGRESSION = tuple(RegressionSummary((), torch.float32).meanings)[:-1]
CLASSES = tuple(ClassSummary((), torch.float32).meanings)[:-1]


def is_of_classes(outputs: Sequence[str]) -> bool:
    """Whether outputs are those of a classifier; an error if they are of no kind."""
    names = [outputs] if isinstance(outputs, str) else list(outputs)
    own = set(names) - {DRAWS}
    known = own <= set(REGRESSION) or own <= set(CLASSES)
    if (
        isinstance(outputs, str)
        or not names
        or not known
        or len(set(names)) < len(names)
    ):
        raise ParameterError(
            _UNKNOWN.format(
                regression=", ".join(map(repr, REGRESSION)),
                classes=", ".join(map(repr, CLASSES)),
                draws=DRAWS,
                got=repr(outputs),
            )
        )
    return bool(own) and own <= set(CLASSES)


def answer_dtype(dtype: torch.dtype) -> torch.dtype:
    """The type in which answers are given for draws of some type."""
    return working_dtype(dtype)
