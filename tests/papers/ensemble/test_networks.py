"""Perceptrons as the fleet trains them."""

import pytest
import torch

from caveat.papers.ensemble.comparison import (
    DROPOUT,
)
from caveat.papers.ensemble.networks import Kind, Perceptron, as_rows
from caveat.papers.lenet import as_input
from caveat.papers.lenet.images import small_digits
from caveat.sampling import audit


@pytest.mark.parametrize(
    ("rates", "n_sites"), [((0.0, 0.0, 0.0), 0), ((0.0, 0.1, 0.1), 2), ((0.1,) * 3, 3)]
)
def test_a_network_drops_where_the_fleet_does(rates, n_sites):
    net = Perceptron(Kind(rates, 0.0), 1, 0).build()
    assert sum(isinstance(m, torch.nn.Dropout) for m in net) == n_sites
    assert net(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
    if n_sites:
        assert len(audit(net, torch.zeros(2, 1, 28, 28))) == n_sites


def test_a_network_learns_and_is_the_same_again():
    images = small_digits()
    job = Perceptron(DROPOUT[0], 3, seed=1, n_train=600)
    net = job.train(images)
    with torch.no_grad():
        found = net(as_input(images.test.image)).argmax(-1)
        again = job.train(images)(as_input(images.test.image)).argmax(-1)
    assert torch.equal(found, again)
    assert (found == images.test.label).double().mean() > 0.7
    rows = as_rows(images.test)
    assert rows.x.shape == (450, 784)
    torch.testing.assert_close(rows.x, as_input(images.test.image).flatten(1))
