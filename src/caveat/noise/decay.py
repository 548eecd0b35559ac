"""The weight decay that belongs to a prior, as parameter groups of an optimiser."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from caveat import _validation as validation
from caveat._torch import ConvNd
from caveat.errors import ParameterError
from caveat.noise.base import NoisyModule
from caveat.noise.priors import NO_PRIOR, is_bias, listed, named_keep_probs
from caveat.noise.units import UnitNoise
from caveat.theory.chains import in_order
from caveat.theory.loss import Loss
from caveat.theory.precision import l2_penalty, weight_decay_from_penalty

_WEIGHTS = (nn.Linear, ConvNd, nn.Embedding, nn.EmbeddingBag)
_MASKS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)

_UNKNOWN = """keep_prob must be given for {names}.
Which dropout feeds these weights cannot be read off {model}: only chains are followed,
that is nn.Sequential (nested or not) of linear, convolution and embedding layers and
nn.Dropout*, each weight with one keep probability. Pass keep_prob={{name: 1 - drop
rate on the input of that layer, …}}, or one number if it holds for all weights."""

_NO_DECAY = """The KL term of {names} is no weight decay: the noise there is learned, or
Gaussian. Add caveat.noise.kl(model, lengthscale) to the loss, and leave the optimiser's
weight decay at 0."""


def weight_decay_groups(
    model: nn.Module,
    *,
    precision: float,
    lengthscale: float,
    n_train: int,
    loss: Loss,
    keep_prob: float | Mapping[str, float] | None = None,
) -> list[dict[str, Any]]:
    """Optimiser groups whose weight decay is the prior N(0, 1/l²) of papers 000, 001.

    Each weight layer is decayed by the keep probability p of the dropout that feeds
    it, weight_decay = 2 c l² / (p tau N), and biases, which nothing drops, with p = 1
    (ledger E13, E14, E17). Torch scales what it keeps by 1/p, hence the division.
    Normalisation layers and PReLU slopes have no prior and are not decayed.

    Parameters
    ----------
    model : nn.Module
        Not changed. In a chain of modules (``nn.Sequential``) the dropout between a
        weight layer and the one before feeds it; several multiply. Layers of
        ``caveat.noise`` bring their own keep probability, in any model.
    precision : float
        tau in the units the model is trained in; 1 for a log-likelihood.
    lengthscale : float
        l.
    n_train : int
        N, the number of training rows.
    loss : Loss
        What is coded as the data term.
    keep_prob : float or mapping, optional
        For other models: p of the input of every weight layer, or {parameter name: p}.
        What a mapping leaves out is looked for in the chain.

    Returns
    -------
    list of dict
        With ``params`` and ``weight_decay``, all parameters of the model, for an
        optimiser whose decay is coupled: SGD, Adam; not AdamW
        (``require_coupled_decay``).

    Examples
    --------
    >>> from torch import optim
    >>> net = nn.Sequential(
    ...     nn.Linear(2, 50), nn.ReLU(), nn.Dropout(0.2), nn.Linear(50, 1)
    ... )
    >>> groups = weight_decay_groups(
    ...     net, precision=4.0, lengthscale=0.2, n_train=100,
    ...     loss=Loss.half_squared_error(),
    ... )
    >>> [(len(g["params"]), round(g["weight_decay"], 9)) for g in groups]
    [(3, 0.0001), (1, 0.000125)]
    >>> optimiser = optim.Adam(groups, lr=1e-3)
    """
    model = validation.module("model", model)
    _require_decays(model)
    members: dict[float, list[Tensor]] = {}
    for parameter, keep in _keep_probs(model, keep_prob).items():
        decay = 0.0
        if keep is not None:
            penalty = l2_penalty(
                precision=precision,
                lengthscale=lengthscale,
                keep_prob=keep,
                n_train=n_train,
                loss=loss,
                inverted=True,
            )
            decay = weight_decay_from_penalty(penalty)
        members.setdefault(decay, []).append(parameter)
    return [{"params": own, "weight_decay": decay} for decay, own in members.items()]


def _keep_probs(
    model: nn.Module, given: float | Mapping[str, float] | None
) -> dict[Tensor, float | None]:
    """For each parameter p of what feeds it; None for those without a prior."""
    if given is None or isinstance(given, Mapping):
        known = _carried(model) | _fed_in_chain(model) | _named(model, given or {})
        every = None
    else:
        known, every = {}, validation.keep_prob("keep_prob", given)
    keeps: dict[Tensor, float | None] = {}
    unknown: list[str] = []
    for name, parameter, owner in _parameters(model):
        keep = known.get(parameter, _by_kind(name, owner, every))
        if keep is None and not isinstance(owner, NO_PRIOR):
            unknown.append(name)
        keeps[parameter] = keep
    if unknown:
        known_as = {"names": listed(unknown), "model": type(model).__name__}
        raise ParameterError(_UNKNOWN.format(**known_as))
    return keeps


def _by_kind(name: str, owner: nn.Module, weights: float | None) -> float | None:
    """p of a parameter that is not known by itself: that of ``weights``, or 1."""
    if isinstance(owner, NO_PRIOR):
        return None
    return 1.0 if is_bias(name) else weights


def _parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter, nn.Module]]:
    """Each parameter once, with its name and the module that holds it."""
    seen: set[nn.Parameter] = set()
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(path, recurse=False):
            if parameter not in seen:
                seen.add(parameter)
                yield name, parameter, module


def _named(model: nn.Module, given: Mapping[str, float]) -> dict[Tensor, float | None]:
    parameters = dict(model.named_parameters(remove_duplicate=False))
    keeps = named_keep_probs(model, given)
    return {parameters[name]: keep for name, keep in keeps.items()}


def _fed_in_chain(model: nn.Module) -> dict[Tensor, float | None]:
    """p of the input of each weight layer of a chain; None if it is not clear."""
    fed: dict[Tensor, float | None] = {}
    keep: float | None = 1.0
    for module in in_order(model):
        own = {module.weight: keep} if isinstance(module, _WEIGHTS) else None
        if (carried := _noise_of(module)) is not None:
            own = _behind(module, carried, keep)
        if own is not None:
            for weight, p in own.items():
                fed[weight] = p if fed.get(weight, p) == p else None
            keep = 1.0
        elif isinstance(module, _MASKS):
            rate = validation.drop_rate(module.p, where=f"{module} of the model")
            keep = None if keep is None else keep * (1.0 - rate)
        elif isinstance(module, UnitNoise) and module.keep_prob is not None:
            keep = None if keep is None else keep * module.keep_prob
        elif not _is_clear(module):
            keep = None
    return fed


def _noise_of(module: nn.Module) -> dict[Tensor, float] | None:
    """Keep probabilities that a noisy layer carries itself."""
    return module.keep_probs() if isinstance(module, NoisyModule) else None


def _carried(model: nn.Module) -> dict[Tensor, float | None]:
    """Keep probabilities of all noisy layers."""
    return {w: p for m in model.modules() for w, p in (_noise_of(m) or {}).items()}


def _behind(
    module: nn.Module, carried: dict[Tensor, float], keep: float | None
) -> dict[Tensor, float | None]:
    """p of the weights of a noisy layer behind dropout that keeps ``keep``."""
    if keep == 1.0:
        return dict(carried)
    weight = getattr(module, "weight", None)  # a recurrent net has no single one
    return {
        w: keep * p if keep is not None and w is weight else None
        for w, p in carried.items()
        if w.ndim > 1
    }


def _require_decays(model: nn.Module) -> None:
    """Refuse noise whose KL term depends on more than squared weights."""
    names = [name for name, m in model.named_modules() if _noise_of(m) == {}]
    if names:
        raise ParameterError(_NO_DECAY.format(names=listed(names)))


def _is_clear(module: nn.Module) -> bool:
    """Whether a module surely neither drops units nor mixes them by weights."""
    if isinstance(module, NO_PRIOR):
        return True
    plain = not list(module.children()) and not list(module.parameters())
    plain = plain and not hasattr(module, "keep_prob")
    return plain and "drop" not in type(module).__name__.lower()
