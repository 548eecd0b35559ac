"""What is known of a value of the tape: its mean and variance over the noise.

Two kinds of knowledge. :class:`Independent` holds a variance for each element and takes
the elements of a row as independent; :class:`Correlated` holds the covariance of all
elements of a row. Both say whether what they hold is exact.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, final

import torch
from torch import Tensor

from caveat.predictive.gaussian import JOINT_LIMIT
from caveat.predictive.moments import flat_event
from caveat.sampling.closed_form.activations import Transformed, in_blocks
from caveat.sampling.closed_form.covariances import linear_covariance
from caveat.sampling.closed_form.origins import Origins

Map = Callable[[Tensor], Tensor]

_COPIES = "copies of one drawn value (expand, repeat)"
_LARGER = "a constant of a larger shape"


class NotSupportedError(Exception):
    """An operation that has no rule; the message says what was met."""


@dataclass(frozen=True)
class Belief(ABC):
    """Mean of a value over the noise, and how it spreads.

    Attributes
    ----------
    mean : Tensor
        Of the shape of the value.
    sources : frozenset of int
        Numbers of the noises that it depends on.
    exact : bool
        Whether mean and variance are exact.
    """

    mean: Tensor
    sources: frozenset[int]
    exact: bool

    @property
    @abstractmethod
    def variance(self) -> Tensor:
        """Variance of each element, of the shape of the mean."""

    @abstractmethod
    def covariance(self) -> Tensor | None:
        """Of the elements of a row, (batch, D, D); None if it is not known."""

    @abstractmethod
    def linear(self, weight: Tensor, bias: Tensor | None) -> Self:
        """After a linear layer on the last axis."""

    @abstractmethod
    def spread_by(self, mean: Map, variance: Map, what: str) -> Self:
        """After a linear map of neighbours: a convolution, or averages."""

    @abstractmethod
    def scaled(self, factor: Any) -> Self:
        """Times a number, or a constant that broadcasts to the shape."""

    @abstractmethod
    def shifted(self, term: Any) -> Self:
        """Plus a constant."""

    @abstractmethod
    def reshaped(self, function: Map) -> Self:
        """The same elements in another shape, rows first."""

    @abstractmethod
    def activated(self, function: Callable[..., Transformed], *args: Any) -> Self:
        """After a non-linear function of each element, as if that were Gaussian."""

    @abstractmethod
    def times(self, noise: "Independent") -> Self:
        """Times noise that is independent of it."""


@final
@dataclass(frozen=True)
class Independent(Belief):
    """Elements of a row are taken as independent.

    Attributes
    ----------
    apart : bool
        Whether they really are, but for what ``drawn`` says.
    drawn : tuple of Origins
        Which of them are copies of one drawn number, for each noise in them.
    copies : bool
        Whether places of a row depend on the same numbers: they must not be summed.
    """

    spread: Tensor
    apart: bool = False
    _joint: Callable[[], Tensor | None] | None = None
    drawn: tuple[Origins, ...] = ()
    copies: bool = False

    @property
    def apart_in_rows(self) -> bool:
        """Whether no two elements of a row are copies of one drawn number."""
        return not self.copies and all(i.apart_in_rows() for i in self.drawn)

    @property
    def variance(self) -> Tensor:
        return self.spread

    def covariance(self) -> Tensor | None:
        if self._joint is not None:
            return self._joint()
        size = self.mean[0].numel()
        if size != 1 and not (self.apart and size <= JOINT_LIMIT):
            return None
        if size != 1 and not self.apart_in_rows:
            return None
        return torch.diag_embed(flat_event(self.spread, 1))

    def linear(self, weight: Tensor, bias: Tensor | None) -> Self:
        if not all(i.apart_on_last_axis() for i in self.drawn):
            raise NotSupportedError(f"a linear layer over {_COPIES}")
        apart_in_rows = self.apart_in_rows
        # E87: E = W m + b,  Var = W² v
        mean = torch.nn.functional.linear(self.mean, weight, bias)
        spread = torch.nn.functional.linear(self.spread, weight.square())
        before = self.spread

        def joint() -> Tensor | None:
            return linear_covariance(weight, before)

        return replace(
            self,
            mean=mean,
            spread=spread,
            exact=self.exact and self.apart,
            apart=False,
            _joint=joint if apart_in_rows else None,
            drawn=(),
            copies=not apart_in_rows,
        )

    def spread_by(self, mean: Map, variance: Map, what: str) -> Self:
        if not self.apart_in_rows:
            raise NotSupportedError(f"{what} over {_COPIES}")
        return replace(
            self,
            mean=mean(self.mean),
            spread=variance(self.spread),
            exact=self.exact and self.apart,
            apart=False,
            _joint=None,
            drawn=(),
        )

    def scaled(self, factor: Any) -> Self:
        factor = _like(factor, self.mean)
        joint = self._joint
        mean = self.mean * factor
        if mean.shape != self.mean.shape:
            raise NotSupportedError(f"a product with {_LARGER}")

        def scaled_joint() -> Tensor | None:
            whole = None if joint is None else joint()
            flat = flat_event(factor.expand(mean.shape), 1)
            return None if whole is None else whole * flat[:, :, None] * flat[:, None]

        spread = self.spread * factor.square()
        new = None if joint is None else scaled_joint
        return replace(self, mean=mean, spread=spread, _joint=new)

    def shifted(self, term: Any) -> Self:
        mean = self.mean + _like(term, self.mean)
        if mean.shape != self.mean.shape:
            raise NotSupportedError(f"a sum with {_LARGER}")
        return replace(self, mean=mean)

    def reshaped(self, function: Map) -> Self:
        mean, spread = function(self.mean), function(self.spread)
        if self.copies and mean.shape[-1:] != self.mean.shape[-1:]:
            raise NotSupportedError(f"a change of shape of {_COPIES}")
        drawn = self.drawn
        if not drawn and mean.numel() > self.mean.numel():
            drawn = (Origins.of(self.mean.shape),)  # from here on there are copies
        kept = self._joint is not None and _same_order(function, self.mean)
        return replace(
            self,
            mean=mean,
            spread=spread,
            _joint=self._joint if kept else None,
            drawn=tuple(i.seen(function) for i in drawn),
        )

    def activated(self, function: Callable[..., Transformed], *args: Any) -> Self:
        parts = in_blocks(function, self.mean, self.spread, *args)
        mean = torch.cat([part.mean for part in parts])
        spread = torch.cat([part.variance for part in parts])
        pooled = mean.shape != self.mean.shape
        if pooled and not self.apart_in_rows:
            raise NotSupportedError(f"pooling of {_COPIES}")
        return replace(
            self,
            mean=mean,
            spread=spread,
            exact=False,
            apart=False,
            _joint=None,
            drawn=() if pooled else self.drawn,
        )

    def times(self, noise: "Independent") -> Self:
        mean, spread = _product(self, noise)
        return replace(
            self,
            mean=mean,
            spread=spread,
            sources=self.sources | noise.sources,
            _joint=None,
            drawn=(*self.drawn, *_spread_over(noise, self.mean.shape)),
        )


@final
@dataclass(frozen=True)
class Correlated(Belief):
    """The covariance of all elements of a row, between which only linear layers stand.

    A non-linear function multiplies covariances by the mean slopes of both elements
    (ledger E89): the first term of their series. Its variances are as for
    :class:`Independent`.
    """

    joint: Tensor  # shape: (batch, features, features)

    @classmethod
    def of(cls, belief: Independent) -> "Correlated":
        """Elements that are independent."""
        if not belief.apart_in_rows:
            raise NotSupportedError(f"{_COPIES}, with correlations")
        joint = torch.diag_embed(flat_event(belief.spread, 1))
        return cls(belief.mean, belief.sources, belief.exact, joint)

    @property
    def variance(self) -> Tensor:
        return self.joint.diagonal(dim1=-2, dim2=-1).reshape(self.mean.shape)

    def covariance(self) -> Tensor | None:
        return self.joint

    def linear(self, weight: Tensor, bias: Tensor | None) -> Self:
        if self.mean.dim() != 2:
            raise NotSupportedError("a linear layer on sequences, with correlations")
        mean = torch.nn.functional.linear(self.mean, weight, bias)
        # E88: Cov = W C W'
        return replace(self, mean=mean, joint=weight @ self.joint @ weight.t())

    def spread_by(self, mean: Map, variance: Map, what: str) -> Self:
        raise NotSupportedError(f"{what}, with correlations")

    def scaled(self, factor: Any) -> Self:
        factor = _like(factor, self.mean)
        if (self.mean * factor).shape != self.mean.shape:
            raise NotSupportedError(f"a product with {_LARGER}")
        flat = flat_event(factor.expand(self.mean.shape), 1)
        joint = self.joint * flat[:, :, None] * flat[:, None]
        return replace(self, mean=self.mean * factor, joint=joint)

    def shifted(self, term: Any) -> Self:
        mean = self.mean + _like(term, self.mean)
        if mean.shape != self.mean.shape:
            raise NotSupportedError(f"a sum with {_LARGER}")
        return replace(self, mean=mean)

    def reshaped(self, function: Map) -> Self:
        if not _same_order(function, self.mean):
            raise NotSupportedError("elements in another order, with correlations")
        return replace(self, mean=function(self.mean))

    def activated(self, function: Callable[..., Transformed], *args: Any) -> Self:
        parts = in_blocks(function, self.mean, self.variance, *args)
        mean, variance, slope = (torch.cat(same) for same in zip(*parts, strict=True))
        if mean.shape != self.mean.shape:
            raise NotSupportedError("pooling, with correlations")
        flat = flat_event(slope, 1)
        # E89: Cov(s(u), s(v)) = E s'(u) E s'(v) Cov(u, v) + ...
        joint = self.joint * flat[:, :, None] * flat[:, None]
        joint.diagonal(dim1=-2, dim2=-1).copy_(flat_event(variance, 1))
        return replace(self, mean=mean, exact=False, joint=joint)

    def times(self, noise: Independent) -> Self:
        if not noise.apart_in_rows:
            raise NotSupportedError(f"noise made of {_COPIES}, with correlations")
        mean, variance = _product(self, noise)
        factor = flat_event(noise.mean.expand(self.mean.shape), 1)
        joint = self.joint * factor[:, :, None] * factor[:, None]
        joint.diagonal(dim1=-2, dim2=-1).copy_(flat_event(variance, 1))
        sources = self.sources | noise.sources
        return replace(self, mean=mean, joint=joint, sources=sources)


def _spread_over(noise: Independent, shape: Sequence[int]) -> Iterator[Origins]:
    """The numbers of a noise at the elements of what it multiplies."""
    for identity in noise.drawn:
        yield identity.seen(lambda numbers: numbers.expand(tuple(shape)))


def _same_order(function: Map, mean: Tensor) -> bool:
    """Whether rows stay rows, and the elements of a row in order."""
    order = torch.arange(mean.numel()).view(mean.shape)
    new = function(order)
    return len(new) == len(mean) and torch.equal(new.flatten(), order.flatten())


def _like(constant: Any, mean: Tensor) -> Tensor:
    return torch.as_tensor(constant, dtype=mean.dtype, device=mean.device)


def _product(value: Belief, noise: Independent) -> tuple[Tensor, Tensor]:
    """Mean and variance of the product with independent noise (ledger E86)."""
    if noise.sources & value.sources:
        raise NotSupportedError("a product of values that depend on the same noise")
    if not has_own_noise(noise.mean.shape, value.mean.shape):
        raise NotSupportedError(
            f"noise of shape {tuple(noise.mean.shape)} that several elements of a "
            f"value of shape {tuple(value.mean.shape)} share"
        )
    # E86: E xm = E x E m,  Var xm = Var x (Var m + (E m)²) + (E x)² Var m
    second = noise.spread + noise.mean.square()
    spread = value.mean.square().mul_(noise.spread).addcmul_(value.variance, second)
    unbiased = bool((noise.mean == 1.0).all())
    return value.mean if unbiased else value.mean * noise.mean, spread


def has_own_noise(noise: Sequence[int], value: Sequence[int]) -> bool:
    """Whether every element of a row has noise of its own; rows may share it."""
    return len(noise) == len(value) and tuple(noise[1:]) == tuple(value[1:])
