"""Noise on features, then a linear layer, then the output: the usual end of a network.

Given the features h, the mean and covariance of the output over this last noise are
closed forms:  W h E m + b  and  W diag(h² Var m) W'.  If h does not depend on noise
that is the whole answer, exactly. Otherwise it is the answer given all earlier noise,
and only that need be sampled (Rao and Blackwell).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from caveat.predictive.moments import working_dtype
from caveat.sampling.closed_form.beliefs import (
    Belief,
    Independent,
    NotSupportedError,
    has_own_noise,
)
from caveat.sampling.closed_form.covariances import linear_covariance
from caveat.sampling.closed_form.origins import Origins
from caveat.sampling.closed_form.propagation import largest_excess, noise_belief
from caveat.sampling.closed_form.rules import rule_of
from caveat.sampling.endings import Ending, Product
from caveat.sampling.rewriting.uses import linear_arguments
from caveat.sampling.tape import Op, Tape, map_refs


@dataclass(frozen=True)
class LastLayer:
    """The end of a tape: ``after(linear(before(features * noise), weight, bias))``.

    Attributes
    ----------
    features : int
        Number of the value that the noise multiplies.
    constant : Tensor or None
        That value, if it does not depend on noise.
    noise : Independent
        Mean and variance of the noise.
    weight, bias : Tensor
        Of the linear layer.
    apart_in_rows : bool
        Whether all that the layer sees of a row has noise of its own; if not, what it
        sums over has, but its places share noise: their covariance is not known.
    excess : float
        Excess kurtosis of the noise.
    """

    features: int
    constant: Tensor | None
    noise: Independent
    weight: Tensor
    bias: Tensor | None
    apart_in_rows: bool
    excess: float
    _before: tuple[Callable[[Tensor], Tensor], ...]
    _after: tuple[Callable[[Belief], Belief], ...]

    def conditional_mean(self, features: Tensor) -> Tensor:
        """E over the last noise of the linear layer, given the features."""
        x = self._seen(features) * self._seen(self.noise.mean, features.shape)
        bias = None if self.bias is None else self.bias.to(x)
        return torch.nn.functional.linear(x, self.weight.to(x), bias)

    def exact(self) -> Belief:
        """Mean and variance of the output, if the features are constant."""
        assert self.constant is not None
        mean = self.conditional_mean(self.constant)
        nothing = mean.new_zeros(1)
        features = self.constant.to(mean.dtype)
        # E95: E f = W h E m + b,  Cov f = W diag(h² Var m) W'
        return self.total(mean, features.square(), nothing, nothing)

    def total(
        self, mean: Tensor, square: Tensor, between: Tensor, joint: Tensor | None
    ) -> Belief:
        """Mean and variance of the output, by the law of total variance.

        Parameters
        ----------
        mean : Tensor
            Mean of :meth:`conditional_mean` over draws.
        square : Tensor
            Mean of the squared features over draws.
        between : Tensor
            Variance of :meth:`conditional_mean` over draws.
        joint : Tensor, shape (batch, D, D), or None
            Its covariance; None if there are too many outputs.
        """
        dtype = mean.dtype
        own = self._seen(square, dtype=dtype)
        spread = self._seen(self.noise.spread, square.shape, dtype) * own
        weight = self.weight.to(mean)
        # E96: Var f = E Var(f | h) + Var E(f | h)
        variance = torch.nn.functional.linear(spread, weight.square()) + between

        def covariance() -> Tensor | None:
            if not self.apart_in_rows:
                return None
            within = linear_covariance(weight, spread)
            return None if within is None or joint is None else within + joint

        exact = self.constant is not None
        return self.finished(
            Independent(mean, self.noise.sources, exact, variance, _joint=covariance)
        )

    def finished(self, belief: Belief) -> Belief:
        """After what stands between the layer and the output."""
        for function in self._after:
            belief = function(belief)
        return belief

    def _seen(
        self,
        tensor: Tensor,
        shape: Sequence[int] | None = None,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        """What the linear layer sees of a tensor like the features."""
        tensor = tensor.to(dtype or working_dtype(tensor.dtype))
        tensor = tensor if shape is None else tensor.expand(*shape)
        for function in self._before:
            tensor = function(tensor)
        return tensor


def last_layer_of(ending: Ending) -> LastLayer | None:
    """The end of a tape, if the moments of its noise are known."""
    tape, linear = ending.tape, ending.linear
    factors = _factors(ending)
    arguments = linear_arguments(linear, tape)
    if factors is None or arguments is None:
        return None
    features, noise = factors
    before = tuple(_on_tensors(op) for op in ending.before)
    drawn = _drawn_at_layer(noise, tape.values[features].shape, before)
    if not all(identity.apart_on_last_axis() for identity in drawn):
        return None
    _, weight, bias = arguments
    constant = tape.constants.get(features)
    layer = LastLayer(
        features,
        None if constant is None else constant.detach(),
        noise,
        tape.constants[weight].detach(),
        None if bias is None else tape.constants[bias].detach(),
        all(identity.apart_in_rows() for identity in drawn),
        largest_excess(tape),
        before,
        tuple(_on_beliefs(op, tape) for op in ending.after),
    )
    return layer if _ends_in(layer, ending) else None


def _drawn_at_layer(
    noise: Independent,
    shape: Sequence[int],
    before: Sequence[Callable[[Tensor], Tensor]],
) -> list[Origins]:
    """Which drawn number is behind each element that the linear layer sees."""
    found = []
    for identity in noise.drawn:
        identity = identity.seen(lambda numbers: numbers.expand(tuple(shape)))
        for function in before:
            identity = identity.seen(function)
        found.append(identity)
    return found


def _ends_in(layer: LastLayer, ending: Ending) -> bool:
    """Whether what follows the layer can be followed, as far as the output."""
    values = ending.tape.values
    nothing = layer.weight.new_zeros(values[ending.linear.result].shape)
    try:
        end = layer.finished(Independent(nothing, frozenset(), True, nothing))
    except NotSupportedError:
        return False
    return tuple(end.mean.shape) == tuple(values[ending.output].shape)


def _factors(ending: Ending) -> tuple[int, Independent] | None:
    """Features and noise, if they are multiplied element by element."""
    for product in ending.products:
        noise = _noise(ending.tape, product)
        if noise is None:
            continue
        shape = ending.tape.values[product.features].shape
        fits = has_own_noise(noise.mean.shape, shape)
        return (product.features, noise) if fits else None
    return None


def _noise(tape: Tape, product: Product) -> Independent | None:
    """The moments of the factor that is made of noise."""
    try:
        belief: Belief = noise_belief(tape.noises[product.noise], product.noise)
        for op in product.chain:
            belief = _on_beliefs(op, tape)(belief)
    except NotSupportedError:
        return None
    return belief if isinstance(belief, Independent) else None


def _on_tensors(op: Op) -> Callable[[Tensor], Tensor]:
    return lambda tensor: op.func(tensor, *op.args[1:], **op.kwargs)


def _on_beliefs(op: Op, tape: Tape) -> Callable[[Belief], Belief]:
    rule = rule_of(op.func)
    assert rule is not None

    def function(belief: Belief) -> Belief:
        def value(number: int) -> Belief | Tensor:
            constant = tape.constants.get(number)
            return belief if constant is None else constant.detach()

        args = map_refs(value, op.args)
        kwargs = {k: map_refs(value, v) for k, v in op.kwargs.items()}
        return rule(*args, **kwargs)

    return function
