"""What moments cannot be carried through is named, with what to do instead."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caveat import MCDropout
from caveat.errors import UnsupportedModelError
from tests.sampling.closed_form.nets import assert_same, numbers, seeded


class Unsupported(nn.Module):
    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind
        self.drop = nn.Dropout(0.5)
        self.first = nn.Linear(4, 4)
        self.unit = nn.GELU() if kind == "gelu" else nn.Identity()
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        y = self.first(self.drop(x))
        if self.kind == "gelu":
            return self.unit(y)
        if self.kind == "layer norm":
            return self.norm(y)
        if self.kind == "residual":
            return y + self.first(y)
        if self.kind == "softmax":
            return y.softmax(-1)
        if self.kind == "product":
            return y * self.first(y)
        if self.kind == "division":
            return x / y
        if self.kind == "drawn weights":
            return F.linear(x, self.drop(self.first.weight))
        assert self.kind == "feature dropout"
        return self.first(F.dropout1d(x.view(-1, 2, 2), 0.5, True).flatten(1))


MESSAGES = {
    "gelu": "module 'unit' of Unsupported: the operation gelu",
    "layer norm": "module 'norm' of Unsupported: the operation layer_norm",
    "residual": "a shortcut or residual",
    "softmax": "the operation softmax",
    "product": "a product of two values that both depend on noise",
    "division": "a division by a value that depends on noise",
    "drawn weights": "a linear layer whose weights are drawn",
    "feature dropout": "that several elements",
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_unsupported_parts_are_named(kind):
    with pytest.raises(UnsupportedModelError) as caught:
        MCDropout(Unsupported(kind)).moments(torch.randn(3, 4))
    assert MESSAGES[kind] in str(caught.value)
    assert "Sample instead" in str(caught.value)


class Branch(nn.Linear):
    def forward(self, x):
        y = F.dropout(x, 0.5)
        return y if y.sum() > 0 else 2 * y


def test_python_that_decides_by_draws():
    with pytest.raises(UnsupportedModelError, match="decides in Python"):
        MCDropout(Branch(1, 1)).moments(torch.arange(1.0, 13.0).view(3, 4))


def test_an_output_made_of_outputs():
    with pytest.raises(UnsupportedModelError, match="as it is"):
        MCDropout(two_layers()).moments(numbers(3, 3), output=lambda y: y[:, :1])


def test_images_with_correlations():
    model = nn.Sequential(nn.Dropout(0.5), nn.Conv2d(1, 1, 2))
    with pytest.raises(UnsupportedModelError, match="a convolution, with correlations"):
        MCDropout(model).moments(torch.randn(2, 1, 3, 3), correlated=True)


def two_layers() -> nn.Sequential:
    return seeded(
        lambda: nn.Sequential(nn.Dropout(0.3), nn.Linear(3, 4), nn.Linear(4, 2))
    )


class Pair(nn.Module):
    """Two outputs, one of which no rule covers."""

    def __init__(self):
        super().__init__()
        self.net = two_layers()

    def forward(self, x):
        y = self.net(x)
        return {"logits": y, "probs": y.softmax(-1)}


def test_only_what_the_output_needs_is_followed():
    model, x = Pair(), numbers(3, 3)
    found = MCDropout(model).moments(x)
    assert_same(found.mean, MCDropout(model.net).moments(x).mean)
    with pytest.raises(UnsupportedModelError, match="softmax"):
        MCDropout(model).moments(x, output=lambda out: out["probs"])
