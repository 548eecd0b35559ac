"""Means and variances carried along the tape of a pass: no noise is drawn.

The tape is read once. Constants are certain, noises have the moments of their laws, and
each operation has a rule for what becomes of them. Linear maps are exact; non-linear
functions take their argument as Gaussian, and, unless correlations are kept, the
elements of a row as independent of each other. So the answer is an approximation,
except where nothing but linear maps follows the noise.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from caveat._torch import below_autograd, op_name
from caveat.predictive.moments import working_dtype
from caveat.sampling.closed_form.beliefs import (
    Belief,
    Correlated,
    Independent,
    NotSupportedError,
)
from caveat.sampling.closed_form.laws import law_excess, law_moments
from caveat.sampling.closed_form.origins import Origins
from caveat.sampling.closed_form.rules import LAYERS, rule_of
from caveat.sampling.noise import NoiseSpec
from caveat.sampling.tape import Op, Tape, map_refs


class NoRuleError(Exception):
    """An operation could not be followed.

    Attributes
    ----------
    op : Op
        The operation.
    """

    def __init__(self, op: Op, reason: str) -> None:
        super().__init__(reason)
        self.op = op


@dataclass
class Propagation:
    """What is known of the values of a tape, found when asked for.

    Attributes
    ----------
    tape : Tape
        Without writes.
    correlated : bool
        Whether covariances between the elements of a row are kept.
    """

    tape: Tape
    correlated: bool = False
    _known: dict[int, Belief] = field(default_factory=dict)

    def belief(self, number: int) -> Belief:
        """What is known of an output of the tape."""
        with torch.no_grad(), below_autograd():
            for op in self.tape.ops:
                self._follow(op)
        return self._known[number]

    def _follow(self, op: Op) -> None:
        rule = rule_of(op.func)
        try:
            if rule is None or len(op.results) != 1 or op.writes:
                raise NotSupportedError(f"the operation {_name(op)}")
            args = map_refs(self._value, op.args)
            if self.correlated and op.func in LAYERS:
                args = tuple(map(_with_correlations, args))
            kwargs = {key: map_refs(self._value, v) for key, v in op.kwargs.items()}
            self._known[op.result] = rule(*args, **kwargs)
        except NotSupportedError as error:
            raise NoRuleError(op, str(error)) from None

    def _value(self, number: int) -> Belief | Tensor:
        constant = self.tape.constants.get(number)
        if constant is None:
            if number in self.tape.noises and number not in self._known:
                self._known[number] = noise_belief(self.tape.noises[number], number)
            return self._known[number]
        constant = constant.detach()
        return constant.float() if _half(constant) else constant


def noise_belief(spec: Any, source: int) -> Independent:
    """The noise of a site: every element has the moments of its law."""
    if not isinstance(spec, NoiseSpec):
        raise NotSupportedError("noise that is not drawn at a site")
    mean, variance = law_moments(spec.law)
    like = torch.empty(spec.shape, dtype=working_dtype(spec.dtype), device=spec.device)
    centre, spread = torch.full_like(like, mean), torch.full_like(like, variance)
    drawn = (Origins.of(spec.shape),)
    return Independent(
        centre, frozenset({source}), True, spread, apart=True, drawn=drawn
    )


def largest_excess(tape: Tape) -> float:
    """The largest excess kurtosis among the noises of a tape."""
    laws = (s.law for s in tape.noises.values() if isinstance(s, NoiseSpec))
    return max(map(law_excess, laws), default=0.0)


def _half(constant: Tensor) -> bool:
    return constant.dtype in (torch.float16, torch.bfloat16)


def _with_correlations(argument: Any) -> Any:
    return Correlated.of(argument) if isinstance(argument, Independent) else argument


def _name(op: Op) -> str:
    return op_name(op.func) or str(op.func)
