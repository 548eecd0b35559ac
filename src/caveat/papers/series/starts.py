"""First weights from which a dropout net learns a season in thousands of steps.

With zero biases every kink of a net lies at x = 0, where a season is close to
unlearnable. So kinks are spread over the data. For ReLU units that is not enough: a
second layer that adds up hinges of both signs, most of which are large and cancel,
drowns in the noise of units that are dropped. Half of its units begin as *tents*
instead, a bias less hinges that open away from a place:

    relu(height - slope Σ_j v_j relu(±(x - kink_j))),  v_j >= 0.

Near the place only few hinges are active, and far from it their sum is large with one
sign, so that dropping a tenth of them does not wake the unit. The other half begins as
an ordinary layer, with a kink at a random row each: it carries what is beyond the data.
"""

import math

import torch
from torch import Tensor

REACH = 0.05  # of the hinges of a tent, in standard deviations of x
HALF_WIDTH = 0.09  # of a tent
_TENTS = 0.5  # share of the second layer
_LEAST = 1e-3  # slope of a tent at the edge, where it has no hinges on one side

Start = list[tuple[Tensor, Tensor]]  # weights (inputs, outputs), biases (outputs,)


def spread_kinks(x: Tensor, width: int, n_hidden: int, rng: torch.Generator) -> Start:
    """For saturating units: variance 4/fan-in, first kinks spread over the data.

    Parameters
    ----------
    x : Tensor, shape (rows, 1)
        Where the data are.
    width, n_hidden : int
        Of the net.
    rng : torch.Generator
        Of all first weights.
    """
    found = [_first(x, width, 4.0, rng)]
    for _ in range(n_hidden - 1):
        found.append((_normal(width, width, 4.0, rng), torch.zeros(width)))
    return [*found, _last(width, rng)]


def tents(x: Tensor, width: int, n_hidden: int, rng: torch.Generator) -> Start:
    """For ReLU units: tents in the second layer, kinks at random rows elsewhere.

    Parameters
    ----------
    x : Tensor, shape (rows, 1)
        Where the data are.
    width, n_hidden : int
        Of the net; at least 2 hidden layers.
    rng : torch.Generator
        Of all first weights.
    """
    found = [_first(x, width, 2.0, rng)]
    h = _units(x, found[0])
    for place in range(1, n_hidden):
        weight = _normal(width, width, 2.0, rng)
        rows = torch.randint(len(x), (width,), generator=rng)
        bias = -(h[rows] * weight.T).sum(1)
        if place == 1:
            count = int(width * _TENTS)
            weight[:, :count], bias[:count] = _tents(x, h, found[0], count, rng)
        found.append((weight, bias))
        h = _units(h, found[-1])
    return [*found, _last(width, rng)]


def _tents(
    x: Tensor, h: Tensor, first: tuple[Tensor, Tensor], count: int, rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Weights and biases of tents at random places, of mean square 1 on the rows."""
    slope, kink = first[0][0], -first[1] / first[0][0]
    at = _between(x, count, rng)
    beyond = slope.sign()[:, None] * (kink[:, None] - at)  # opens away from the place
    share = torch.where(beyond >= 0, torch.exp(-beyond / REACH), 0.0)
    for side in (slope < 0, slope >= 0):
        own = share[side]
        share[side] = own / (own * slope[side].abs()[:, None]).sum(0).clamp_min(_LEAST)
    weight = -share / HALF_WIDTH
    height = 1.0 / torch.relu(1.0 + h @ weight).square().mean().sqrt()
    return weight * height, height.expand(count)


def _first(
    x: Tensor, width: int, gain: float, rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    weight = _normal(1, width, gain, rng)
    return weight, -weight[0] * _between(x, width, rng)


def _last(width: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    return _normal(width, 1, 1.0, rng), torch.zeros(1)


def _between(x: Tensor, count: int, rng: torch.Generator) -> Tensor:
    low, high = x.min(), x.max()
    return low + (high - low) * torch.rand(count, generator=rng)


def _normal(inputs: int, outputs: int, gain: float, rng: torch.Generator) -> Tensor:
    drawn = torch.randn(inputs, outputs, generator=rng)
    return drawn * math.sqrt(gain / inputs)


def _units(x: Tensor, layer: tuple[Tensor, Tensor]) -> Tensor:
    return torch.relu(x @ layer[0] + layer[1])
