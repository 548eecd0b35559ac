"""Which parameters have a prior, and with which keep probability."""

from collections.abc import Iterable, Mapping

from torch import nn

from caveat import _validation as validation
from caveat._torch import NormBase
from caveat.errors import ParameterError

NO_PRIOR = (NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.PReLU)


def is_bias(name: str) -> bool:
    """Whether a parameter of this name is a bias, which nothing drops."""
    return "bias" in name.rpartition(".")[2]


def named_keep_probs(model: nn.Module, given: Mapping[str, float]) -> dict[str, float]:
    """Keep probabilities by parameter name, all of parameters that there are."""
    names = dict(model.named_parameters(remove_duplicate=False))
    for name in given:
        if name not in names:
            raise ParameterError(
                f"keep_prob must name parameters of the model. Got {name!r}; "
                f"there are {listed(names)}."
            )
    return {
        name: validation.keep_prob(f"keep_prob[{name!r}]", value)
        for name, value in given.items()
    }


def listed(names: Iterable[str]) -> str:
    """Names as they stand in a message."""
    return ", ".join(map(repr, names))
