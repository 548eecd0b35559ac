"""Covariance of linear layers, restated with loops."""

import torch

from caveat.sampling.closed_form.covariances import linear_covariance
from tests.sampling.closed_form.nets import assert_same, numbers


def test_one_position():
    """E87."""
    weight, variance = numbers(3, 5), numbers(2, 5, seed=1).square()
    found = linear_covariance(weight, variance)
    for row in range(2):
        assert_same(found[row], weight @ variance[row].diag() @ weight.t())


def test_positions_are_independent():
    weight, variance = numbers(2, 4), numbers(3, 5, 4, seed=1).square()
    found = linear_covariance(weight, variance).view(3, 5, 2, 5, 2)
    for left in range(5):
        for right in range(5):
            block = found[:, left, :, right]
            same = torch.stack([weight @ v[left].diag() @ weight.t() for v in variance])
            assert_same(block, same if left == right else torch.zeros_like(block))


def test_too_many_outputs():
    assert linear_covariance(torch.ones(65, 2), torch.ones(1, 2)) is None
    assert linear_covariance(torch.ones(33, 2), torch.ones(1, 2, 2)) is None
