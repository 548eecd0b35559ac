"""The moments of one batch: exact if the network allows it, else propagated."""

import torch

from caveat.errors import UnsupportedModelError
from caveat.predictive.gaussian import EXACT
from caveat.predictive.moment_matched import PROPAGATED, MomentPredictive
from caveat.sampling.closed_form.beliefs import Belief
from caveat.sampling.closed_form.checking import contradicted
from caveat.sampling.closed_form.propagation import (
    NoRuleError,
    Propagation,
    largest_excess,
)
from caveat.sampling.closed_form.rules import SUPPORTED
from caveat.sampling.engine import Session
from caveat.sampling.outputs import Picker
from caveat.sampling.rewriting import without_writes
from caveat.sampling.tape import Op, Ref

_NO_RULE = """Moments cannot be carried through {where}: {reason}.
There are rules for {supported}.
Sample instead: MCDropout(model).regress(x, precision=tau) or .classify(x)."""

_NO_TAPE = """{name} decides in Python by drawn values, or uses autograd itself: there
is no fixed chain of operations to carry moments along. Sample instead:
MCDropout(model).regress(x, precision=tau) or .classify(x)."""

_CONTRADICTED = """The closed form of the moments of {name} contradicts {n} draws. This
should not happen: please report the model. Sample instead:
MCDropout(model).regress(x, precision=tau) or .classify(x)."""

_CHECK_DRAWS = 64

_NOT_A_LEAF = """output= must pick one of the tensors that the model returns, as it is.
Moments of something made from them are not known."""


def moments_of(
    session: Session, picker: Picker, name: str, *, correlated: bool
) -> MomentPredictive:
    """Mean and variance of the output of interest over all noise."""
    if session.tape is None:
        raise UnsupportedModelError(_NO_TAPE.format(name=name))
    position = picker.position(session.first_leaves, session.structure)
    if position is None:
        raise UnsupportedModelError(_NOT_A_LEAF)
    tape = session.tape.copy()
    without_writes(tape)
    output = tape.outputs[position]
    assert isinstance(output, Ref)
    tape.outputs = [output]
    tape.drop_dead()
    try:
        belief = Propagation(tape, correlated).belief(output.number)
    except NoRuleError as error:
        where, reason = _where(error.op, name), str(error)
        message = _NO_RULE.format(where=where, reason=reason, supported=SUPPORTED)
        raise UnsupportedModelError(message) from None
    if belief.exact and not _agrees(session, picker, belief, largest_excess(tape)):
        raise UnsupportedModelError(_CONTRADICTED.format(name=name, n=_CHECK_DRAWS))
    method = EXACT if belief.exact else PROPAGATED
    return MomentPredictive.of(
        belief.mean, belief.variance, method=method, covariance=belief.covariance()
    )


def _agrees(session: Session, picker: Picker, belief: Belief, excess: float) -> bool:
    """Whether a few draws could have these moments; asked once of a model."""

    def find() -> bool:
        draws = (
            picker.pick(leaves, session.structure).double()
            for leaves in session.outputs(range(_CHECK_DRAWS))
        )
        mean, square = (torch.zeros_like(belief.mean).double() for _ in range(2))
        for draw in draws:
            gap = draw - belief.mean.double()
            mean, square = mean + gap / _CHECK_DRAWS, square + gap.square()
        variance = square / _CHECK_DRAWS - mean.square()
        moments = (belief.mean, belief.variance, mean + belief.mean, variance)
        return not contradicted(*moments, _CHECK_DRAWS, excess)

    return session.once("exact moments", find)


def _where(op: Op, name: str) -> str:
    return f"module {op.path!r} of {name}" if op.path else name
