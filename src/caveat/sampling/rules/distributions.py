"""Laws that no single number of ours has: made of uniform, normal, exponential ones.

What ``torch.distributions`` and in-place fillings draw. Numbers of ours have addresses,
so these have them too: rows share them, batches may be split, and a tape may be
replayed. Where torch rejects proposals in a loop (gamma), there are so many at once
that all are rejected less often than once in 10¹⁵ numbers.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from caveat._torch import OpOverload
from caveat.sampling.noise import Exponential, Law, Normal, Uniform
from caveat.sampling.passes import Pass
from caveat.sampling.rules.random import with_own_generator

_aten = torch.ops.aten

_PROPOSALS = 12  # of a gamma number; one is accepted with probability 0.95 or more
_HALVINGS = 21  # of the interval that a Poisson number lies in, all but surely
_MOST_TRIALS = 256  # of a binomial number that are drawn one by one


def _drawn(
    run: Pass,
    kind: str,
    law: Law,
    x: Tensor,
    shape: tuple[int, ...] | None = None,
    *,
    exact: bool = True,
) -> Tensor:
    """Numbers for ``x``, in double precision where they are not just compared."""
    dtype = torch.float64 if exact else torch.float32
    like = torch.empty(shape or x.shape, dtype=dtype, device=x.device)
    return run.values(kind, law, like, content=x)


# ------------------------------------------------------------ filling a tensor


def _log_normal_(
    run: Pass,
    func: OpOverload,
    x: Tensor,
    mean: float = 1.0,
    std: float = 2.0,
    **_: Any,
) -> Tensor:
    normal = _drawn(run, "log-normal", Normal(mean, std), x)
    with run.recorder:
        return x.copy_(normal.exp())


def _cauchy_(
    run: Pass,
    func: OpOverload,
    x: Tensor,
    median: float = 0.0,
    sigma: float = 1.0,
    **_: Any,
) -> Tensor:
    uniform = _drawn(run, "cauchy", Uniform(), x)
    with run.recorder:
        return x.copy_(median + sigma * ((uniform - 0.5) * math.pi).tan())


def _geometric_(run: Pass, func: OpOverload, x: Tensor, p: float, **_: Any) -> Tensor:
    uniform = _drawn(run, "geometric", Uniform(), x)
    with run.recorder:
        if p >= 1.0:
            return x.fill_(1.0)
        return x.copy_((uniform.log() / math.log1p(-p)).ceil().clamp(min=1.0))


# ------------------------------------------------------------ choices


def _multinomial(
    run: Pass,
    func: OpOverload,
    weights: Tensor,
    n: int,
    replacement: bool = False,
    **_: Any,
) -> Tensor:
    """Places by their weights: an exponential race, or the inverse of a sum."""
    if not replacement or n == 1:
        clocks = _drawn(run, "multinomial", Exponential(), weights)
        with run.recorder:
            order: Tensor = (weights / clocks).topk(n).indices
            return order
    shape = (*weights.shape[:-1], n)
    uniform = _drawn(run, "multinomial", Uniform(), weights, shape)
    with run.recorder:
        sums = weights.double().cumsum(-1)
        total = sums[..., -1:]
        below = torch.minimum(uniform * total, total * (1 - 2**-50))
        places = torch.searchsorted(sums, below, right=True)
        return places.clamp(max=weights.shape[-1] - 1)  # weights may be NaN


# ------------------------------------------------------------ numbers that are counted


def _poisson(run: Pass, func: OpOverload, rate: Tensor, **_: Any) -> Tensor:
    """The smallest k with P(at most k) above a uniform number, by halving."""
    uniform = _drawn(run, "poisson", Uniform(), rate)
    with run.recorder:
        mean = rate.double()
        margin = 10 * mean.sqrt() + 40
        low, high = (mean - margin).floor().clamp(min=-1), (mean + margin).ceil()
        for _step in range(_HALVINGS):
            middle = ((low + high) / 2).floor()
            enough = torch.special.gammaincc(middle.clamp(min=0) + 1, mean) > uniform
            enough = enough & (middle >= 0)
            low, high = low.where(enough, middle), middle.where(enough, high)
        return high.clamp(min=0).to(rate.dtype)


def _binomial(
    run: Pass, func: OpOverload, count: Tensor, prob: Tensor, **_: Any
) -> Tensor:
    """Few trials are drawn one by one; many as torch does it."""
    with run.recorder:
        most = int(count.max()) if count.numel() else 0
    if most > _MOST_TRIALS or most < 1:
        return with_own_generator(run, func, count, prob)
    shape = (*torch.broadcast_shapes(count.shape, prob.shape), most)
    uniform = _drawn(run, "binomial", Uniform(), prob, shape, exact=False)
    with run.recorder:
        tried = torch.arange(most, device=prob.device) < count[..., None]
        hits = (uniform < prob[..., None]) & tried
        return hits.sum(-1).to(prob.dtype)


# ------------------------------------------------------------ gamma and its kin


def _standard_gamma(run: Pass, func: OpOverload, alpha: Tensor, **_: Any) -> Tensor:
    gamma = _gamma(run, "gamma", alpha)
    with run.recorder:
        return gamma.clamp(min=torch.finfo(alpha.dtype).tiny).to(alpha.dtype)


def _dirichlet(run: Pass, func: OpOverload, alpha: Tensor, **_: Any) -> Tensor:
    gamma = _gamma(run, "dirichlet", alpha)
    with run.recorder:
        return (gamma / gamma.sum(-1, keepdim=True)).to(alpha.dtype)


def _gamma(run: Pass, kind: str, alpha: Tensor) -> Tensor:
    """By Marsaglia and Tsang (2000); small shapes by a larger one times U^(1/α)."""
    shape = (*alpha.shape, _PROPOSALS)
    normal = _drawn(run, kind, Normal(), alpha, shape)
    uniform = _drawn(run, kind, Uniform(), alpha, shape)
    boost = _drawn(run, kind, Uniform(), alpha)
    with run.recorder:
        exact = alpha.double()
        small = exact < 1
        d = (torch.where(small, exact + 1, exact) - 1 / 3)[..., None]
        v = (1 + normal / (9 * d).sqrt()) ** 3
        bound = normal.square() / 2 + d - d * v + d * v.clamp(min=1e-300).log()
        accepted = (v > 0) & (uniform.log() < bound)
        first = accepted.to(torch.uint8).argmax(-1, keepdim=True)
        found = (d * v).gather(-1, first).squeeze(-1)
        found = torch.where(small, found * boost ** (1 / exact), found)
        return found.clamp(min=torch.finfo(torch.float64).tiny)


RULES: dict[OpOverload, Callable[..., Any]] = {
    _aten.log_normal_.default: _log_normal_,
    _aten.cauchy_.default: _cauchy_,
    _aten.geometric_.default: _geometric_,
    _aten.multinomial.default: _multinomial,
    _aten.poisson.default: _poisson,
    _aten.binomial.default: _binomial,
    _aten._standard_gamma.default: _standard_gamma,
    _aten._sample_dirichlet.default: _dirichlet,
}
