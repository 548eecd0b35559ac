"""The KL term of a whole model."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from caveat import _validation as validation
from caveat._torch import DropoutNd
from caveat.errors import ParameterError
from caveat.noise.base import NoisyModule, checked_lengthscale, dropped_kl
from caveat.noise.priors import NO_PRIOR, is_bias, listed, named_keep_probs
from caveat.noise.units import UnitNoise
from caveat.theory.divergence import Lengthscale

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
        terms.append(dropped_kl(parameter, keeps(name), length))
    return torch.stack(terms).sum() if terms else torch.zeros(())


class _Keeps:
    """p of a plain parameter by its name; 1 for biases and what is not named."""

    def __init__(self, named: Mapping[str, float], other: float) -> None:
        self.named, self.other = named, other

    def __call__(self, name: str) -> float:
        return self.named.get(name, 1.0 if is_bias(name) else self.other)


def _keep_probs(
    model: nn.Module, inside: set[int], given: float | Mapping[str, float] | None
) -> _Keeps:
    loose = {
        n: m for n, m in model.named_modules() if _drops(m) and id(m) not in inside
    }
    no_rate = [n for n, m in loose.items() if getattr(m, "keep_prob", 1.0) is None]
    if no_rate:
        raise ParameterError(_LEARNED.format(names=listed(no_rate)))
    if given is None:
        if loose:
            raise ParameterError(_LOOSE.format(names=listed(loose)))
        return _Keeps({}, 1.0)
    if not isinstance(given, Mapping):
        return _Keeps({}, validation.keep_prob("keep_prob", given))
    return _Keeps(named_keep_probs(model, given), 1.0)


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
        if isinstance(module, NO_PRIOR):
            continue
        for name, parameter in module.named_parameters(path, recurse=False):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield name, parameter
