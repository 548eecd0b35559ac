"""Non-linearities by name: the function, its derivative, and the module.

The stacked networks of a fleet are differentiated by hand, so each non-linearity says
what its slope is, given its argument and its value.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from caveat.errors import ParameterError

LEAK = 0.01


class CosineActivation(nn.Module):
    """cos(x): with it a network approximates the squared-exponential kernel."""

    def forward(self, x: Tensor) -> Tensor:
        return x.cos()


class SineActivation(nn.Module):
    """sin(x)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sin()


@dataclass(frozen=True)
class Activation:
    """A non-linearity h = f(z), with f'(z) as a function of (z, h).

    Both write into the last argument, so that a training loop allocates nothing.
    """

    function: Callable[[Tensor, Tensor], object]
    slope: Callable[[Tensor, Tensor, Tensor], object]
    module: Callable[[], nn.Module]


def _by_formula(
    function: Callable[[Tensor], Tensor],
    slope: Callable[[Tensor, Tensor], Tensor],
    module: Callable[[], nn.Module],
) -> Activation:
    return Activation(
        lambda z, out: out.copy_(function(z)),
        lambda z, h, out: out.copy_(slope(z, h)),
        module,
    )


def _silu_slope(z: Tensor, h: Tensor) -> Tensor:
    gate = z.sigmoid()
    return gate + h * (1 - gate)


def _gelu_slope(z: Tensor, h: Tensor) -> Tensor:
    density = torch.exp(-0.5 * z.square()) / (2 * torch.pi) ** 0.5
    return torch.special.ndtr(z) + z * density


ACTIVATIONS = {
    "relu": Activation(
        lambda z, out: torch.clamp_min(z, 0.0, out=out),
        lambda z, h, out: torch.sign(h, out=out),
        nn.ReLU,
    ),
    "tanh": Activation(
        lambda z, out: torch.tanh(z, out=out),
        lambda z, h, out: torch.mul(h, h, out=out).neg_().add_(1.0),
        nn.Tanh,
    ),
    "cos": Activation(
        lambda z, out: torch.cos(z, out=out),
        lambda z, h, out: torch.sin(z, out=out).neg_(),
        CosineActivation,
    ),
    "sin": Activation(
        lambda z, out: torch.sin(z, out=out),
        lambda z, h, out: torch.cos(z, out=out),
        SineActivation,
    ),
    "leaky_relu": _by_formula(
        lambda z: F.leaky_relu(z, LEAK),
        lambda z, h: torch.where(z > 0, 1.0, LEAK),
        lambda: nn.LeakyReLU(LEAK),
    ),
    "elu": _by_formula(F.elu, lambda z, h: torch.where(z > 0, 1.0, h + 1), nn.ELU),
    "sigmoid": _by_formula(torch.sigmoid, lambda z, h: h * (1 - h), nn.Sigmoid),
    "softplus": _by_formula(F.softplus, lambda z, h: z.sigmoid(), nn.Softplus),
    "silu": _by_formula(F.silu, _silu_slope, nn.SiLU),
    "gelu": _by_formula(F.gelu, _gelu_slope, nn.GELU),
    "identity": _by_formula(lambda z: z, lambda z, h: torch.ones_like(z), nn.Identity),
}


def activation(name: str) -> Activation:
    """The non-linearity of that name.

    Parameters
    ----------
    name : str
        ``"relu"``, ``"tanh"``, ``"cos"``, …; the keys of ``ACTIVATIONS``.

    Returns
    -------
    Activation
    """
    if name not in ACTIVATIONS:
        known = ", ".join(map(repr, ACTIVATIONS))
        raise ParameterError(f"activation must be one of {known}. Got {name!r}.")
    return ACTIVATIONS[name]
