"""The KL term of a whole model."""

from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor, nn

from caveat import _validation as validation
from caveat._torch import DropoutNd, NormBase
from caveat.errors import ParameterError
from caveat.noise import divergence
from caveat.noise.base import NoisyModule
from caveat.noise.divergence import Lengthscale, checked_lengthscale
from caveat.noise.units import UnitNoise

_NO_PRIOR = (NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.PReLU)

_LOOSE = """keep_prob must be given for the weights that {names} feed.
Dropout beside a layer does not say which weights it feeds. Pass keep_prob={{name of the
weight: 1 - drop rate on the input of its layer, …}}, weights left out being kept for
sure, or one number for all of them; or let the layer carry its noise:
caveat.noise.Bernoulli(drop_rate).wrap(layer)."""

_LEARNED = """The weights that {names} feed have no keep probability: the noise there is
not dropout at a fixed rate. Let the layer carry it, as in
caveat.noise.Concrete().wrap(layer) or caveat.noise.Gaussian(variance).wrap(layer)."""


def kl(
    model: nn.Module,
    lengthscale: Lengthscale,
    *,
    keep_prob: float | Mapping[str, float] | None = None,
) -> Tensor:
    """KL divergence of all weights of a model from their prior N(0, 1/l²).

    Minus the bound of paper 000 (eqs 12-15) is, up to constants, ::

        tau / 2 * n_train * mean_squared_error + kl(model, lengthscale)

    with the squared error of a row summed over its outputs, and for a classifier
    ``n_train * cross_entropy + kl(model, lengthscale)``. Noisy layers count by their
    own ``kl``. All other weights and biases count as points, kept for sure, by
    (l²/2p) |W|², p = 1 (ledger E30). Normalisation layers and PReLU slopes have no
    prior.

    Parameters
    ----------
    model : nn.Module
        Not changed. A module that is used twice counts once.
    lengthscale : float or Tensor
        l. A tensor is not checked, so that it can be mapped over.
    keep_prob : float or mapping, optional
        p of what feeds the plain layers, needed if the model has dropout modules of
        its own: one number for all weights, or {parameter name: p}. Dropout that is
        called as a function is not seen.

    Returns
    -------
    Tensor
        In nats, without axes, differentiable, and safe under ``torch.func.vmap``.

    Examples
    --------
    >>> from caveat import noise
    >>> net = nn.Sequential(
    ...     noise.Bernoulli(0.1).wrap(nn.Linear(2, 50)),
    ...     nn.ReLU(),
    ...     noise.Bernoulli(0.1).wrap(nn.Linear(50, 1)),
    ... )
    >>> x, y, tau = torch.zeros(8, 2), torch.zeros(8, 1), 4.0
    >>> loss = tau / 2 * 8 * nn.functional.mse_loss(net(x), y) + noise.kl(net, 0.1)
    >>> loss.backward()
    """
    model = validation.module("model", model)
    length = checked_lengthscale(lengthscale)
    noisy = [m for m in model.modules() if isinstance(m, NoisyModule)]
    inside = {id(part) for module in noisy for part in module.modules()}
    terms = [module.kl(length) for module in noisy]
    keeps = _keep_probs(model, inside, keep_prob)
    for name, parameter in _points(model, inside):
        terms.append(divergence.dropped(parameter, keeps(name), length))
    return torch.stack(terms).sum() if terms else torch.zeros(())


class _Keeps:
    """p of a plain parameter by its name; 1 for biases and what is not named."""

    def __init__(self, named: Mapping[str, float], other: float) -> None:
        self.named, self.other = named, other

    def __call__(self, name: str) -> float:
        is_bias = "bias" in name.rpartition(".")[2]
        return self.named.get(name, 1.0 if is_bias else self.other)


def _keep_probs(
    model: nn.Module, inside: set[int], given: float | Mapping[str, float] | None
) -> _Keeps:
    loose = {
        n: m for n, m in model.named_modules() if _drops(m) and id(m) not in inside
    }
    no_rate = [n for n, m in loose.items() if getattr(m, "keep_prob", 1.0) is None]
    if no_rate:
        raise ParameterError(_LEARNED.format(names=_listed(no_rate)))
    if given is None:
        if loose:
            raise ParameterError(_LOOSE.format(names=_listed(loose)))
        return _Keeps({}, 1.0)
    if not isinstance(given, Mapping):
        return _Keeps({}, validation.keep_probability("keep_prob", given))
    return _Keeps(_named(model, given), 1.0)


def _named(model: nn.Module, given: Mapping[str, float]) -> dict[str, float]:
    names = dict(model.named_parameters(remove_duplicate=False))
    for name in given:
        if name not in names:
            raise ParameterError(
                f"keep_prob must name parameters of the model. Got {name!r}; "
                f"there are {_listed(names)}."
            )
    return {
        name: validation.keep_probability(f"keep_prob[{name!r}]", value)
        for name, value in given.items()
    }


def _drops(module: nn.Module) -> bool:
    """Whether a module drops units that feed other modules, or its own layers."""
    if isinstance(module, UnitNoise):
        return True
    if isinstance(module, nn.RNNBase):
        return bool(module.dropout and module.num_layers > 1)
    return isinstance(module, DropoutNd) and module.p > 0


def _points(model: nn.Module, inside: set[int]) -> Iterator[tuple[str, Tensor]]:
    """Parameters that no noise touches, each once."""
    seen: set[int] = {
        id(p) for m in model.modules() if id(m) in inside for p in m.parameters()
    }
    for path, module in model.named_modules():
        if isinstance(module, _NO_PRIOR):
            continue
        for name, parameter in module.named_parameters(path, recurse=False):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield name, parameter


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
