"""Three ways to read mean and variance off a batch: sampled, partly exact, exact.

All give the same draws; they differ in what they make of them. A :class:`Sampled`
reading takes the moments of the draws. If the network ends in noise and a linear layer,
an :class:`Exact` one (features without noise) takes closed forms instead, and an
:class:`Integrated` one (features with earlier noise) averages closed forms over the
earlier noise.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self, final

import torch
from torch import Tensor

from caveat import _validation as check
from caveat.predictive import GaussianPredictive
from caveat.predictive.gaussian import EXACT
from caveat.predictive.moments import working_dtype
from caveat.sampling.closed_form.beliefs import Belief
from caveat.sampling.closed_form.conditional import ConditionalMoments
from caveat.sampling.closed_form.cost import is_nearly_free
from caveat.sampling.closed_form.last_layer import LastLayer, find_last_layer
from caveat.sampling.dispatch import below_autograd
from caveat.sampling.engine import Replay, Session
from caveat.sampling.jobs import Job
from caveat.sampling.rewriting import without_writes
from caveat.sampling.tape import Ref

INTEGRATED = "rao-blackwell"
_BLOCK = 32  # draws whose conditional moments are summed before they are merged


class FoundMoments(NamedTuple):
    """Mean and variance of a batch in closed form."""

    method: str
    mean: Tensor  # shape: (batch, *event)
    variance: Tensor  # shape: (batch, *event)
    mean_error: Tensor  # shape: (batch, *event)
    covariance: Tensor | None  # shape: (batch, D, D)

    @classmethod
    def of(cls, method: str, belief: Belief, mean_error: Tensor) -> Self:
        """What is known of an output."""
        joint = belief.covariance()
        return cls(method, belief.mean, belief.variance, mean_error, joint)


class Reading(ABC):
    """The draws of a batch, and the predictive that they give."""

    def __init__(self, job: Job, session: Session) -> None:
        self._job = job
        self._session = session

    def draws(self, numbers: range) -> Iterator[Tensor]:
        """The tensor of interest of each draw; good until the next is asked for."""
        return self._job.picked(self._session, numbers)

    @abstractmethod
    def moments(self) -> FoundMoments | None:
        """Mean and variance in closed form, or None: then those of the draws do."""

    def relative_error(self, precision: Tensor) -> float | None:
        """Largest Monte Carlo error of a mean over the predictive std."""
        found = self.moments()
        if found is None:
            return None
        noise = 1.0 / check.precision_for(precision, found.mean)
        return float((found.mean_error / (found.variance + noise).sqrt()).max())


@final
class Sampled(Reading):
    """Moments of the draws."""

    def moments(self) -> None:
        return None


@final
class Exact(Reading):
    """Features without noise: closed forms alone."""

    def __init__(self, job: Job, session: Session, layer: LastLayer) -> None:
        super().__init__(job, session)
        assert layer.constant is not None
        with torch.no_grad(), below_autograd():
            self._belief = layer.exact()

    def moments(self) -> FoundMoments:
        nothing = torch.zeros_like(self._belief.mean)
        return FoundMoments.of(EXACT, self._belief, nothing)


@final
class Integrated(Reading):
    """Features with noise: closed forms given that noise, averaged over draws."""

    def __init__(
        self, job: Job, session: Session, layer: LastLayer, replay: Replay
    ) -> None:
        super().__init__(job, session)
        self._layer = layer
        self._replay = replay
        self._sums: ConditionalMoments | None = None

    def draws(self, numbers: range) -> Iterator[Tensor]:
        block: list[Tensor] = []
        square: Tensor | None = None
        for *leaves, features in self._replay.leaves(self._session.seed, numbers):
            with torch.no_grad(), below_autograd():
                block.append(self._layer.conditional_mean(features))
                square = _add_square(square, features)
            if len(block) == _BLOCK:
                self._take(block, square)
                block, square = [], None
            yield self._job.pick(leaves, self._session)
        if square is not None:
            self._take(block, square)

    def moments(self) -> FoundMoments:
        assert self._sums is not None
        return FoundMoments.of(INTEGRATED, *self._sums.belief(self._layer))

    def _take(self, means: list[Tensor], square: Tensor) -> None:
        new = ConditionalMoments.of(torch.stack(means), square)
        self._sums = new if self._sums is None else self._sums.merge(new)


def reading_of(job: Job, session: Session, analytic: bool | None) -> Reading:
    """The best way to read a batch.

    Parameters
    ----------
    job : Job
        What is asked.
    session : Session
        The batch.
    analytic : bool or None
        True: closed forms wherever they are possible. False: never. None: where they
        cost next to nothing, or save draws.
    """
    position = None if analytic is False else job.position(session)
    if position is None or session.tape is None:
        return Sampled(job, session)
    tape = session.tape.copy()
    without_writes(tape)
    output = tape.outputs[position]
    layer = find_last_layer(tape, output.number) if isinstance(output, Ref) else None
    if layer is None:
        return Sampled(job, session)
    if layer.constant is not None:
        return Exact(job, session, layer)
    if not (analytic or job.tolerance is not None or is_nearly_free(tape, layer)):
        return Sampled(job, session)
    tape.outputs = [*tape.outputs, Ref(layer.features)]
    replay = session.watching(tape)
    return (
        Sampled(job, session)
        if replay is None
        else Integrated(job, session, layer, replay)
    )


def improved(
    drawn: GaussianPredictive, found: Sequence[FoundMoments | None]
) -> GaussianPredictive:
    """The predictive of draws, with closed forms found for all of its batches."""
    parts = [part for part in found if part is not None]
    if len(parts) < len(found) or len({part.method for part in parts}) > 1:
        return drawn
    joints = [part.covariance for part in parts if part.covariance is not None]
    return drawn.with_moments(
        torch.cat([part.mean for part in parts]),
        torch.cat([part.variance for part in parts]),
        method=parts[0].method,
        mean_error=torch.cat([part.mean_error for part in parts]),
        covariance=torch.cat(joints) if joints else None,
    )


def _add_square(total: Tensor | None, features: Tensor) -> Tensor:
    features = features.to(working_dtype(features.dtype))
    if total is None:
        return features.square()
    return total.addcmul_(features, features)
