"""Mean and variance in closed form, where a network ends in noise and a linear layer.

The draws stay what they are; closed forms stand beside them. An :class:`Exact` reading
(features without noise) has closed forms alone, an :class:`Integrated` one (features
with earlier noise) averages closed forms over the earlier noise.
"""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, final

import torch
from torch import Tensor

from caveat._torch import below_autograd
from caveat.errors import CaveatWarning
from caveat.predictive import GaussianPredictive
from caveat.predictive.gaussian import EXACT
from caveat.predictive.moments import working_dtype
from caveat.predictive.strata import Evidences, Seen, Slices
from caveat.sampling.closed_form.beliefs import Belief
from caveat.sampling.closed_form.checking import contradicted
from caveat.sampling.closed_form.conditional import ConditionalMoments
from caveat.sampling.closed_form.cost import is_nearly_free
from caveat.sampling.closed_form.last_layer import LastLayer, last_layer_of
from caveat.sampling.endings import Ending
from caveat.sampling.engine import Session
from caveat.sampling.gathering import FoundMoments, Reading
from caveat.sampling.outputs import Picker
from caveat.sampling.replay import Replay
from caveat.sampling.tape import Ref

INTEGRATED = "rao-blackwell"
_FEATURES = 3.0  # excess kurtosis allowed for drawn features, of which none is known
_CONTRADICTED = """The closed form of mean and variance contradicts the {n} draws beside
it, which are used instead. This should not happen: please report the model."""
_BLOCK = 32  # draws whose conditional moments are summed before they are merged


@final
class Exact(Reading):
    """Features without noise: closed forms alone."""

    def __init__(self, session: Session, picker: Picker, layer: LastLayer) -> None:
        super().__init__(session, picker)
        assert layer.constant is not None
        self._excess = layer.excess
        with torch.no_grad(), below_autograd():
            self._belief = layer.exact()

    def moments(self) -> FoundMoments:
        return _found(EXACT, self._belief, None, None, self._excess)


@final
class Integrated(Reading):
    """Features with noise: closed forms given that noise, averaged over draws."""

    def __init__(
        self, session: Session, picker: Picker, layer: LastLayer, replay: Replay
    ) -> None:
        super().__init__(session, picker)
        self._layer = layer
        self._replay = replay
        self._sums: ConditionalMoments | None = None
        self._slices = Slices(session.design)

    def blocks(self, numbers: range) -> Iterator[Tensor]:
        block: list[Tensor] = []
        square: Tensor | None = None
        for drawn in self._replay.leaves(self._session.seed, numbers):
            assert drawn is not None  # all draws go the same way
            *leaves, features = drawn
            with torch.no_grad(), below_autograd():
                block.append(self._layer.conditional_mean(features))
                square = _add_square(square, features)
            if len(block) == _BLOCK:
                self._take(block, square)
                block, square = [], None
            yield self._picker.pick(leaves, self._session.structure).unsqueeze(0)
        if square is not None:
            self._take(block, square)

    def moments(self) -> FoundMoments:
        assert self._sums is not None
        excess = self._layer.excess + _FEATURES
        belief, slope = self._sums.belief(self._layer)
        seen = self._slices.seen(self._sums.means)
        return _found(INTEGRATED, belief, seen, slope, excess)

    @property
    def sums(self) -> tuple[ConditionalMoments | None, Slices]:
        return self._sums, self._slices

    def go_on(self, sums: Any) -> bool:
        if sums is None:  # they were not taken, as there was no closed form before
            return False
        self._sums, self._slices = sums
        return True

    def _take(self, means: list[Tensor], square: Tensor) -> None:
        block = torch.stack(means)
        self._slices.add(block)
        new = ConditionalMoments.of(block, square)
        self._sums = new if self._sums is None else self._sums.merge(new)


def closed_reading(
    session: Session, picker: Picker, ending: Ending, *, at_any_cost: bool
) -> Reading | None:
    """A reading with closed forms, or None if there are none, or they are costly.

    Parameters
    ----------
    session : Session
        The batch.
    picker : Picker
        Which output is read.
    ending : Ending
        The end of its tape.
    at_any_cost : bool
        Take closed forms also where they make a draw slower.
    """
    layer = last_layer_of(ending)
    if layer is None:
        return None
    if layer.constant is not None:
        return Exact(session, picker, layer)
    tape = ending.tape
    if not at_any_cost and not is_nearly_free(tape, layer):
        return None
    tape.outputs = [*tape.outputs, Ref(layer.features)]
    replay = session.watching(tape)
    return None if replay is None else Integrated(session, picker, layer, replay)


def improved(
    drawn: GaussianPredictive,
    parts: Sequence[FoundMoments],
    evidence: Sequence[Evidences | None],
) -> GaussianPredictive:
    """The predictive of draws, with closed forms found for all of its batches.

    ``evidence`` is what the errors of each go by: what all batches say together or,
    if each stopped for itself, what it says alone.
    """
    if len({part.method for part in parts}) > 1:
        return drawn
    mean = torch.cat([part.mean for part in parts])
    variance = torch.cat([part.variance for part in parts])
    own = (drawn.mean, drawn.epistemic_variance, drawn.n_draws)
    if contradicted(mean, variance, *own, max(part.excess for part in parts)):
        message = _CONTRADICTED.format(n=drawn.n_draws)
        warnings.warn(message, CaveatWarning, stacklevel=2)
        return drawn
    joints = [part.covariance for part in parts if part.covariance is not None]
    return drawn.with_moments(
        mean,
        variance,
        method=parts[0].method,
        mean_error=torch.cat(list(map(FoundMoments.mean_error, parts, evidence))),
        covariance=torch.cat(joints) if joints else None,
    )


def _found(
    method: str,
    belief: Belief,
    seen: Seen | None,
    slope: Tensor | None,
    excess: float,
) -> FoundMoments:
    mean, variance, joint = belief.mean, belief.variance, belief.covariance()
    return FoundMoments(method, mean, variance, seen, slope, joint, excess)


def _add_square(total: Tensor | None, features: Tensor) -> Tensor:
    features = features.to(working_dtype(features.dtype))
    if total is None:
        return features.square()
    return total.addcmul_(features, features)
