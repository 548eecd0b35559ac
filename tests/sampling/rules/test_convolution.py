"""Small convolutions of one row: torch's numbers, from another kernel of torch's."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import caveat
from caveat import MCDropout
from caveat.sampling import rules
from caveat.sampling.rules import convolution

OWN = torch.ops.aten.thnn_conv2d.default
CASES = [
    (5, {}),
    ((5, 4), {}),
    (5, {"padding": 2}),
    (5, {"padding": (2, 0), "stride": (1, 2)}),
    (5, {"stride": 3}),
    (5, {"bias": False}),
    (12, {}),
]
OTHERS = [
    (3, {}),
    ((1, 5), {}),
    (5, {"dilation": 2}),
    (5, {"groups": 2}),
    (5, {"padding": "same"}),
]


class Convolved(nn.Module):
    def __init__(self, *args, **options):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, *args, **options)

    def forward(self, x):
        made = self.conv(x)
        return made, F.dropout(made.relu(), 0.5)


@pytest.fixture
def asked(monkeypatch):
    """How often the kernel of torch's own is taken instead."""
    times = []
    own = convolution._is_small_and_plain

    def told(*args):
        taken = own(*args)
        times.append(taken)
        return taken

    monkeypatch.setattr(convolution, "_is_small_and_plain", told)
    return times


@pytest.mark.parametrize(("kernel", "options"), CASES + OTHERS)
@pytest.mark.parametrize("rows", [1, 3])
def test_values_are_those_of_torch(kernel, options, rows, asked):
    model = Convolved(kernel, **options).eval()
    x = torch.randn(rows, 2, 14, 13)
    with torch.no_grad():
        expected = model.conv(x)
    found, dropped = MCDropout(model, seed=0).draws(x, n_draws=3)
    for draw in found:
        torch.testing.assert_close(draw, expected, rtol=1e-5, atol=1e-6)
    kept = dropped != 0
    torch.testing.assert_close(
        dropped[kept], (2 * expected.relu()).expand_as(dropped)[kept]
    )
    assert any(asked) == (rows == 1 and (kernel, options) in CASES)


def test_first_and_later_calls_agree():
    model = Convolved(5)
    x, other = torch.randn(2, 1, 2, 14, 13)
    sampler = MCDropout(model, seed=0)
    first = sampler.draws(x, n_draws=4)
    sampler.draws(other, n_draws=4)
    later = sampler.draws(x, n_draws=4)
    assert all(map(torch.equal, first, later))


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(1, 2, 14, 13, dtype=torch.float64),
        torch.randn(2, 14, 13)[None].contiguous(memory_format=torch.channels_last),
        torch.randn(1, 2, 140, 130),
    ],
    ids=["float64", "channels last", "much work"],
)
def test_of_others_torch_decides(x, asked):
    model = Convolved(5).to(x.dtype)
    MCDropout(model, seed=0).draws(x, n_draws=2)
    assert asked and not any(asked)


def test_gradients_are_those_of_torch():
    model = Convolved(5)
    x = torch.randn(1, 2, 14, 13)
    with caveat.stochastic(model, seed=0):
        model(x)[0].square().sum().backward()
    found = model.conv.weight.grad.clone()
    model.zero_grad()
    model.conv(x).square().sum().backward()
    torch.testing.assert_close(found, model.conv.weight.grad)


def test_noisy_convolutions_stay_what_they_are(asked):
    model = nn.Sequential(nn.Dropout(0.5), nn.Conv2d(2, 4, 5))
    MCDropout(model, seed=0).draws(torch.randn(1, 2, 14, 13), n_draws=2)
    assert not any(asked)


def test_its_rule_is_known():
    assert rules.rule_for(torch.ops.aten.conv2d.default) is convolution._conv2d
    assert OWN.name() == "aten::thnn_conv2d"
