"""Draws that *are* the distribution: every mask of a tiny net, in proportion."""

from itertools import product

import torch
from torch import Tensor

W1 = torch.tensor([[0.5, -1.0], [1.0, 0.5], [-0.5, 1.5]], dtype=torch.float64)
B1 = torch.tensor([0.1, -0.2, 0.0], dtype=torch.float64)
X = torch.tensor([1.0, -1.0], dtype=torch.float64)


def masks(size: int, odds: int) -> Tensor:
    """All masks of ``size`` units, repeated ``odds`` times per kept unit.

    A unit is kept with probability odds / (odds + 1).
    """
    rows = []
    for mask in product((0.0, 1.0), repeat=size):
        rows += [mask] * odds ** int(sum(mask))
    return torch.tensor(rows, dtype=torch.float64)


def hidden_units(activation, *, input_odds: int | None, inverted: bool) -> Tensor:
    """Hidden units after their masks (keep 1/2); shape (masks, 3)."""
    inputs = X.expand(1, 2)
    if input_odds is not None:
        scale = (input_odds + 1) / input_odds if inverted else 1.0
        inputs = masks(2, input_odds) * X * scale
    units = activation(inputs @ W1.T + B1)
    kept = masks(3, 1) * (2.0 if inverted else 1.0)
    return (units[:, None] * kept[None]).reshape(-1, 3)


def regression_draws(activation, **how) -> Tensor:
    """Outputs of the three-unit net of theory.md, section 13; (masks, 1, 1)."""
    w2 = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    return (hidden_units(activation, **how) @ w2 + 0.25).reshape(-1, 1, 1)


def classifier_logits() -> Tensor:
    """Logits of the classifier of theory.md, section 13; (masks, 1, 2)."""
    w2 = torch.tensor([[1.0, -2.0, 0.5], [0.3, 0.4, -1.0]], dtype=torch.float64)
    b2 = torch.tensor([0.0, 0.1], dtype=torch.float64)
    units = hidden_units(torch.relu, input_odds=None, inverted=False)
    return (units @ w2.T + b2).reshape(-1, 1, 2)
