"""Random operations in their other forms: into ``out=``, or new tensors of a graph."""

import torch
from torch import nn

import caveat

aten = torch.ops.aten


class Noisy(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.linear, self.how = nn.Linear(3, 3), how
        self.register_buffer("scratch", torch.zeros(1, 3))

    def forward(self, x):
        return self.linear(x) + self.how(self, x)


def draws(how):
    torch.manual_seed(0)
    return caveat.MCDropout(Noisy(how), seed=0).draws(torch.ones(4, 3), n_draws=50)


def test_others_of_an_operation_draw_the_same_numbers():
    usual = draws(lambda m, x: torch.rand(len(x), 3))
    for how in (
        lambda m, x: torch.rand(len(x), 3, out=torch.empty(len(x), 3)),
        lambda m, x: torch.rand(len(x), 3, out=torch.empty(0)),
        lambda m, x: aten.uniform(x, 0.0, 1.0),
    ):
        assert torch.equal(draws(how), usual)


def test_out_is_what_is_returned():
    def both(m, x):
        out = torch.empty(len(x), 3)
        found = torch.normal(x, 2.0, out=out)
        assert found is out
        return found - out

    zero = draws(lambda m, x: both(m, x) + torch.rand(len(x), 1) * 1e-9)
    assert zero.std(0).max() < 1e-6


def test_a_buffer_that_noise_is_written_to_stays_as_it_is():
    seen = []

    def into_scratch(m, x):
        seen.append(m.scratch)
        return torch.randn(1, 3, out=m.scratch) * 2

    assert draws(into_scratch).std(0).min() > 1
    assert all(not scratch.any() for scratch in seen)
