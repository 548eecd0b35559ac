"""Predictives from draws that come block by block.

An accumulator belongs to one batch of rows and is the only mutable thing here. Feed
it blocks of draws, ask it when the Monte Carlo error is small enough, take the
result. How the draws are cut into blocks changes the answer by rounding only.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar, final

import torch
from torch import Tensor

from caveat import _validation
from caveat._random import Seed, as_seed
from caveat.errors import ParameterError
from caveat.predictive.categorical import CategoricalPredictive
from caveat.predictive.class_errors import ClassErrors, ClassesSeen, relative_to_labels
from caveat.predictive.covariance import JointMoments
from caveat.predictive.gaussian import JOINT_LIMIT, GaussianPredictive, per_draw
from caveat.predictive.moments import Moments, finite_moments, merge, working_dtype
from caveat.predictive.strata import Evidences, Seen, Slices, Stratification
from caveat.predictive.tally import Tally

Gathered = TypeVar("Gathered")


class GaussianPending(NamedTuple):
    """A predictive whose errors wait for what other batches have to say."""

    found: GaussianPredictive
    seen: Seen

    @property
    def evidence(self) -> Evidences:
        """Of its own rows."""
        return (self.seen.evidence,)

    def settled(self, evidence: Evidences) -> GaussianPredictive:
        """With its errors; ``evidence`` is that of all rows."""
        error = self.seen.mean_error(evidence[0])
        return replace(self.found, _mean_error=error.to(self.found.mean.dtype))


class CategoricalPending(NamedTuple):
    """A predictive whose errors wait for what other batches have to say."""

    found: CategoricalPredictive
    seen: ClassesSeen

    @property
    def evidence(self) -> Evidences:
        """Of its own rows."""
        return self.seen.evidence

    def settled(self, evidence: Evidences) -> CategoricalPredictive:
        """With its errors; ``evidence`` is that of all rows."""
        return self.found.with_errors(self.seen.errors(evidence))


@final
class GaussianAccumulator:
    """Gathers a :class:`GaussianPredictive`.

    Parameters
    ----------
    precision : float, Tensor or None
        tau, as for :meth:`GaussianPredictive.from_draws`; None if it comes with the
        draws, each having its own.
    keep_draws : bool
        Keep the draws themselves, and not only their moments (and, for up to 64
        outputs, their covariance). Who holds all draws in one tensor already saves
        memory by :meth:`GaussianPredictive.from_draws`.
    design : Stratification, optional
        How the draws were stratified; they are then to come in order, from draw 0 on.
    covariance : bool
        False leaves the covariance out, which may be much larger than the moments.

    Examples
    --------
    >>> import torch
    >>> gathered = GaussianAccumulator(precision=4.0, keep_draws=False)
    >>> gathered.add(torch.tensor([[[0.0]], [[2.0]]]))  # two draws of one row
    >>> gathered.add(torch.tensor([[[1.0]]]))
    >>> gathered.result().mean
    tensor([[1.]])
    """

    def __init__(
        self,
        precision: Any,
        keep_draws: bool,
        design: Stratification | None = None,
        *,
        covariance: bool = True,
    ) -> None:
        self._covariance = covariance and not keep_draws
        self._precision = (
            None if precision is None else _validation.precision(precision)
        )
        self._noise: Moments | None = None  # of 1/tau_t
        self._kept_precision: list[Tensor] = []
        self._kept: list[Tensor] | None = [] if keep_draws else None
        self._dtype = torch.float32
        self._moments: Moments | None = None
        self._joint: JointMoments | None = None
        self._slices = Slices(design)

    def add(self, block: Tensor, precision: Tensor | None = None) -> None:
        """Take in a block of draws.

        Parameters
        ----------
        block : Tensor, shape (draws, batch, *event)
            Draws of the same rows as before. Kept as it is, not copied.
        precision : Tensor, shape (draws, batch, *event)
            tau of each of them; needed if, and only if, the accumulator was made with
            ``precision=None``.
        """
        shape = None if self._moments is None else self._moments.mean.shape
        block = _validation.draws(block, axes="(draws, batch, *event)", least=2)
        block = _validation.continues(block, shape).detach()
        moments = finite_moments(block)
        self._note_precision(block, moments, precision)
        self._slices.add(block)
        self._dtype = working_dtype(block.dtype)
        self._moments = (
            moments if self._moments is None else merge(self._moments, moments)
        )
        if self._kept is not None:
            self._kept.append(block)
        if self._covariance and 1 < block[0, 0].numel() <= JOINT_LIMIT:
            joint = JointMoments.of(block)
            self._joint = joint if self._joint is None else self._joint.merge(joint)

    @property
    def evidence(self) -> Evidences:
        """What the draws say of how far stratifying them helps."""
        return (self._slices.seen(_some(self._moments)).evidence,)

    def relative_error(self, evidence: Evidences | None = None) -> float:
        """Worst Monte Carlo error of a mean, relative to the predictive std.

        Parameters
        ----------
        evidence : tuple, optional
            Of all batches together, by ``caveat.predictive.strata.pooled``.

        Returns
        -------
        float
            The largest ``mean_error / std`` of all rows and outputs; infinite
            before the second draw.
        """
        if self._moments is None or self._moments.count < 2:
            return math.inf
        std = (self._moments.variance + self._mean_precision.reciprocal()).sqrt()
        (known,) = evidence or self.evidence
        errors = self._slices.seen(self._moments).mean_error(known)
        return float((errors / std).max())

    def result(self) -> GaussianPredictive:
        """The predictive of all draws so far.

        Returns
        -------
        GaussianPredictive
            It does not change when more draws are added.
        """
        pending = self.pending()
        return pending.settled(pending.evidence)

    def pending(self) -> GaussianPending:
        """The predictive of all draws so far, whose errors are still to be settled."""
        moments = _some(self._moments)
        found = GaussianPredictive.from_moments(
            moments,
            self._dtype,
            precision=self._mean_precision,
            draws=_joined(self._kept),
            joint=self._joint,
            draw_precision=_joined(self._kept_precision or None),
        )
        return GaussianPending(found, self._slices.seen(moments).to(self._dtype))

    def _note_precision(
        self, block: Tensor, moments: Moments, precision: Tensor | None
    ) -> None:
        if (precision is None) == (self._precision is None):
            raise ParameterError(_ONE_PRECISION)
        if precision is None:
            _validation.precision_for(self._precision, moments.mean)
            return
        own = per_draw(_validation.precision(precision), block)
        noise = Moments.of(own.reciprocal())
        self._noise = noise if self._noise is None else merge(self._noise, noise)
        if self._kept is not None:
            self._kept_precision.append(own)

    @property
    def _mean_precision(self) -> Tensor:
        """tau of the mean noise variance, shape (batch, *event)."""
        if self._noise is not None:
            return self._noise.mean.reciprocal()
        return _validation.precision_for(self._precision, _some(self._moments).mean)


_ONE_PRECISION = """precision must be given once: to the accumulator, for all draws, or,
if that was made with precision=None, to each add(), for the draws of the block."""


@final
class CategoricalAccumulator:
    """Gathers a :class:`CategoricalPredictive`.

    Parameters
    ----------
    seed : int, torch.Generator or None
        Of the labels sampled for ``variation_ratio``.
    keep_draws : bool
        Keep the logits themselves; all other answers are the same without.
    design : Stratification, optional
        How the draws were stratified; they are then to come in order, from draw 0 on.

    Examples
    --------
    >>> import torch
    >>> gathered = CategoricalAccumulator(seed=0, keep_draws=False)
    >>> gathered.add(torch.tensor([[[2.0, 0.0]], [[0.0, 2.0]]]))  # two draws
    >>> gathered.result().probs
    tensor([[0.5000, 0.5000]])
    """

    def __init__(
        self, seed: Seed, keep_draws: bool, design: Stratification | None = None
    ) -> None:
        self._seed = as_seed(seed)
        self._kept: list[Tensor] | None = [] if keep_draws else None
        self._dtype = torch.float32
        self._tally: Tally | None = None
        self._errors = ClassErrors(design)

    def add(self, block: Tensor) -> None:
        """Take in a block of draws.

        Parameters
        ----------
        block : Tensor, shape (draws, batch, *extra, classes)
            Logits of the same rows as before. Kept as it is, not copied.
        """
        before = self._tally
        shape = None if before is None else before.log_sum.shape
        block = _validation.continues(_validation.logits(block), shape).detach()
        first = 0 if before is None else before.probs.count
        watch = self._errors.add
        tally = Tally.of(block, seed=self._seed, first_draw=first, watch=watch)
        self._dtype = working_dtype(block.dtype)
        self._tally = tally if before is None else before.merge(tally)
        if self._kept is not None:
            self._kept.append(block)

    @property
    def evidence(self) -> Evidences:
        """What the draws say of how far stratifying them helps."""
        return self._errors.seen(_some(self._tally).probs).evidence

    def relative_error(self, evidence: Evidences | None = None) -> float:
        """Worst Monte Carlo error of a probability p, relative to sqrt(p (1 - p)).

        Parameters
        ----------
        evidence : tuple, optional
            Of all batches together, by ``caveat.predictive.strata.pooled``.

        Returns
        -------
        float
            The largest of all rows and classes; infinite before the second draw.
            Where p (1 - p) is below 1e-4, that is taken in its place.
        """
        if self._tally is None or self._tally.probs.count < 2:
            return math.inf
        probs = self._tally.probs
        seen = self._errors.seen(probs)
        errors = seen.probs.mean_error((evidence or seen.evidence)[0])
        return relative_to_labels(errors, probs.mean)

    def result(self) -> CategoricalPredictive:
        """The predictive of all draws so far.

        Returns
        -------
        CategoricalPredictive
            It does not change when more draws are added.
        """
        pending = self.pending()
        return pending.settled(pending.evidence)

    def pending(self) -> CategoricalPending:
        """The predictive of all draws so far, whose errors are still to be settled."""
        tally = _some(self._tally)
        kept = _joined(self._kept)
        found = CategoricalPredictive.from_tally(tally, self._dtype, kept)
        seen = self._errors.seen(tally.probs).to(self._dtype)
        return CategoricalPending(found, seen)


def _joined(kept: list[Tensor] | None) -> Tensor | None:
    if kept is None:
        return None
    return kept[0] if len(kept) == 1 else torch.cat(kept)


def _some(gathered: Gathered | None) -> Gathered:
    if gathered is None:
        raise ParameterError("There is no result before the first draws. Call add().")
    return gathered
