"""Which arguments a predict step reads, and what a view of a module shares."""

import torch
from torch import nn

from caveat.lightning.stepping import other_arguments, step_view


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(2, 1)

    def forward(self, x):
        return self.last(x)

    def predict_step(self, batch, batch_idx, dataloader_idx=0):
        return 2 * self(batch) + dataloader_idx


class Looks(Net):
    def predict_step(self, batch, batch_idx):
        return (lambda: batch_idx)()


class Anything(Net):
    def predict_step(self, *args):
        return self(args[0])


def test_numbers_that_are_not_read_are_0():
    found = other_arguments(Net().predict_step, [5, 1])
    assert found == {"batch_idx": 0, "dataloader_idx": 1}
    assert other_arguments(Looks().predict_step, [5, 1]) == {"batch_idx": 5}
    assert other_arguments(Anything().predict_step, [5, 1]) == {}


def test_a_view_shares_the_tensors_and_does_the_step():
    net, x = Net(), torch.randn(3, 2)
    view = step_view(net)
    assert view.last is net.last and isinstance(view, Net)
    expected = 2 * net(x) + 1
    others = {"batch_idx": 0, "dataloader_idx": 1}
    torch.testing.assert_close(view(batch=x, others=others), expected)
    torch.testing.assert_close(net(x), net.last(x))
