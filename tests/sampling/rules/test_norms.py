"""Running statistics are used and not written, whichever way a norm is called."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import caveat

NORMS = {
    "F.batch_norm": lambda *a: F.batch_norm(*a, True),
    "F.instance_norm": lambda *a: F.instance_norm(*a, True),
    "batch_norm": lambda x, mean, var, weight, bias: torch.batch_norm(
        x, weight, bias, mean, var, True, 0.1, 1e-5, False
    ),
    "instance_norm": lambda x, mean, var, weight, bias: torch.instance_norm(
        x, weight, bias, mean, var, True, 0.1, 1e-5, False
    ),
    "instance_norm, told not to": lambda x, mean, var, weight, bias: (
        torch.instance_norm(x, weight, bias, mean, var, False, 0.1, 1e-5, False)
    ),
}


class Normed(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm, self.drop = norm, nn.Dropout(0.5)
        self.register_buffer("mean", torch.tensor([0.1, 0.2, 0.3]))
        self.register_buffer("variance", torch.tensor([0.7, 1.1, 1.3]))
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
        self.bias = nn.Parameter(torch.tensor([0.0, -1.0, 1.0]))

    def forward(self, x):
        statistics = (self.mean, self.variance, self.weight, self.bias)
        return self.drop(self.norm(x, *statistics))


@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
def test_running_statistics(norm):
    model = Normed(norm)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    x = torch.linspace(-2, 3, 7 * 3 * 5).view(7, 3, 5)
    draws = caveat.MCDropout(model, seed=0).draws(x, n_draws=200)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    normed = (x - before["mean"][:, None]) / (before["variance"][:, None] + 1e-5).sqrt()
    expected = normed * before["weight"][:, None] + before["bias"][:, None]
    kept = draws != 0
    assert 0.4 < kept.float().mean() < 0.6
    assert torch.allclose(
        draws[kept], 2 * expected.expand_as(draws)[kept], rtol=1e-5, atol=1e-5
    )


def test_without_running_statistics_a_norm_is_left_alone():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(5, 5)

        def forward(self, x):
            return F.dropout(F.instance_norm(self.layer(x)), 0.5)

    model, x = Own(), torch.linspace(-2, 3, 30).view(2, 3, 5).sin()
    draws = caveat.MCDropout(model, seed=0).draws(x, n_draws=50)
    expected = 2 * F.instance_norm(model.layer(x)).detach()
    kept = draws != 0
    assert torch.allclose(draws[kept], expected.expand_as(draws)[kept], atol=1e-5)
