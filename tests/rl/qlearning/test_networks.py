"""A stack of networks against torch, network by network."""

import numpy as np
import pytest
import torch

from caveat.rl.qlearning.networks import QNetworks
from tests.statistics import assert_mean_is, assert_variance_is

SIZES = (7, 6, 5, 3)


def stack(rates, n_networks=2, seed=0):
    def streams(first):
        return [np.random.default_rng(first + k) for k in range(n_networks)]

    return QNetworks(SIZES, rates, weights=streams(seed), noise=streams(seed + 100))


def batch(n_networks=2, n_rows=4):
    rng = np.random.default_rng(9)
    x = rng.normal(size=(n_networks, n_rows, SIZES[0])).astype("f")
    actions = rng.integers(0, SIZES[-1], (n_networks, n_rows))
    return x, actions, rng.normal(size=(n_networks, n_rows)).astype("f")


def masks(networks, x, monkeypatch):
    """Run a pass with masks that are kept and used again from then on."""
    kept = {}
    draw = networks._mask

    def remember(value, layer):
        if layer not in kept:
            kept[layer] = draw(np.ones_like(value), layer)
        return value * kept[layer]

    monkeypatch.setattr(networks, "_mask", remember)
    networks.values(x)
    return kept


def torch_values(networks, x, kept, parameters):
    found = torch.from_numpy(x)
    for layer, (weight, bias) in enumerate(parameters):
        if layer:
            found = found.relu()
        found = (found * torch.from_numpy(kept[layer])) @ weight + bias
    return found


@pytest.mark.parametrize("rates", [(0.0, 0.0, 0.0), (0.0, 0.3, 0.3), (0.2, 0.4, 0.5)])
def test_values_and_gradients_are_those_of_autograd(rates, monkeypatch):
    networks = stack(rates)
    x, actions, targets = batch()
    kept = masks(networks, x, monkeypatch)
    parameters = [
        (torch.tensor(w, requires_grad=True), torch.tensor(b, requires_grad=True))
        for w, b in zip(networks.weights, networks.biases, strict=True)
    ]
    values = torch_values(networks, x, kept, parameters)
    np.testing.assert_allclose(networks.values(x), values.detach(), atol=1e-6)
    taken = values.gather(-1, torch.from_numpy(actions)[..., None])[..., 0]
    ((taken - torch.from_numpy(targets)) ** 2 / 2).sum().backward()
    found = networks.gradients(x, actions, targets)
    for pair, expected in zip(found, parameters, strict=True):
        for ours, theirs in zip(pair, expected, strict=True):
            np.testing.assert_allclose(ours, theirs.grad, atol=1e-5)


def test_update_decays_weights_and_not_biases():
    networks = stack((0.0, 0.1, 0.1))
    before = [(w.copy(), b.copy()) for w, b in _pairs(networks)]
    gradients = [(np.ones_like(w), np.full_like(b, 2.0)) for w, b in before]
    networks.update(gradients, rate=0.1, decay=0.01)
    for (w, b), (old_w, old_b) in zip(_pairs(networks), before, strict=True):
        np.testing.assert_allclose(w, 0.99 * old_w - 0.1, atol=1e-6)
        np.testing.assert_allclose(b, old_b - 0.2, atol=1e-6)


def _pairs(networks):
    return list(zip(networks.weights, networks.biases, strict=True))


def test_first_weights():
    many = stack((0.0, 0.0, 0.0), n_networks=400)
    for weight, n_inputs in zip(many.weights, SIZES[:-1], strict=True):
        flat = torch.from_numpy(weight.reshape(-1)).double()
        assert_mean_is(flat, 0.0)
        assert_variance_is(flat, 1 / n_inputs)
    assert [set(b.reshape(-1).tolist()) for b in many.biases] == [
        {np.float32(0.1)},
        {np.float32(0.1)},
        {0.0},
    ]


def test_masks_have_the_rate_and_mean_one():
    networks = stack((0.1, 0.0, 0.0), n_networks=1)
    drawn = networks._mask(np.ones((1, 20_000, 7), dtype="f"), 0)
    values = torch.from_numpy(drawn.reshape(-1)).double()
    assert sorted(set(values.tolist())) == pytest.approx([0.0, 1 / 0.9], rel=1e-4)
    assert_mean_is((values == 0).double(), 6554 / 65536)
    assert_mean_is(values, 1.0)


def test_rows_and_passes_have_masks_of_their_own():
    networks = stack((0.0, 0.5, 0.5))
    x = np.broadcast_to(batch()[0][:, :1], (2, 30, SIZES[0]))
    first, second = networks.values(x), networks.values(x)
    assert len(np.unique(first[0, :, 0])) > 5
    assert (first != second).any()
    averaged = networks.averaged(x)
    np.testing.assert_allclose(averaged, np.broadcast_to(averaged[:, :1], (2, 30, 3)))


def test_a_network_does_the_same_alone_and_in_a_stack():
    x, actions, targets = batch(n_networks=3)
    together, alone = stack((0.0, 0.2, 0.2), 3), stack((0.0, 0.2, 0.2), 1, seed=1)
    np.testing.assert_allclose(
        together.values(x)[1], alone.values(x[1:2])[0], atol=1e-6
    )
    many = together.gradients(x, actions, targets)
    one = alone.gradients(x[1:2], actions[1:2], targets[1:2])
    for pair, single in zip(many, one, strict=True):
        np.testing.assert_allclose(pair[0][1], single[0][0], atol=1e-5)
