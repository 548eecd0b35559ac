"""A stack of networks against torch, network by network."""

import numpy as np
import pytest
import torch

from caveat.rl.qlearning.networks import QNetworks, TakenAction
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


def kept_masks(networks, n_rows, monkeypatch):
    """Masks that are used in all passes from now on."""
    factors = networks._factors(n_rows)
    monkeypatch.setattr(networks, "_factors", lambda rows: factors)
    return [1.0 if factor is None else factor for factor in factors]


def torch_values(x, kept, parameters):
    found = torch.from_numpy(x)
    for layer, (weight, bias) in enumerate(parameters):
        if layer:
            found = found.relu()
        found = (found * kept[layer]) @ weight + bias
    return found


@pytest.mark.parametrize("rates", [(0.0, 0.0, 0.0), (0.0, 0.3, 0.3), (0.2, 0.4, 0.5)])
def test_values_and_steps_are_those_of_autograd(rates, monkeypatch):
    networks = stack(rates)
    x, actions, targets = batch()
    kept = kept_masks(networks, x.shape[1], monkeypatch)
    parameters = [
        (torch.tensor(w, requires_grad=True), torch.tensor(b, requires_grad=True))
        for w, b in _pairs(networks)
    ]
    values = torch_values(x, kept, parameters)
    np.testing.assert_allclose(networks.values(x), values.detach(), atol=1e-6)
    taken = values.gather(-1, torch.from_numpy(actions)[..., None])[..., 0]
    ((taken - torch.from_numpy(targets)) ** 2 / 2).sum().backward()
    networks.descend(x, actions, targets, rate=0.1, decay=0.01)
    for (w, b), (weight, bias) in zip(_pairs(networks), parameters, strict=True):
        by_weight, by_bias = 0.1 * weight.grad, 0.1 * bias.grad
        expected = 0.99 * weight.detach() - by_weight
        np.testing.assert_allclose(w, expected, atol=1e-6)
        np.testing.assert_allclose(b, bias.detach() - by_bias, atol=1e-6)
        assert by_weight.abs().max() > 1e-3


def test_gradient_of_the_loss_is_that_of_autograd():
    outputs = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    actions = torch.randint(3, (2, 4, 1)).double()
    targets = torch.cat([actions, torch.randn(2, 4, 1).double()], -1)
    objective = TakenAction(3)
    assert objective.n_outputs(2) == 3
    loss = objective.loss(outputs, targets)
    assert loss.shape == (2, 4)
    (expected,) = torch.autograd.grad(loss.sum(), outputs)
    torch.testing.assert_close(objective.gradient(outputs.detach(), targets), expected)


def test_weights_can_be_written_to():
    networks = stack((0.0, 0.0, 0.0))
    x = batch()[0]
    for array in (*networks.weights, *networks.biases[:-1]):
        array[...] = 0.0
    networks.biases[-1][...] = [1.0, 2.0, 3.0]
    expected = np.broadcast_to(np.float32([1, 2, 3]), (2, 4, 3))
    np.testing.assert_array_equal(networks.values(x), expected)


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
    drawn, *others = networks._factors(20_000)
    assert drawn.shape == (1, 20_000, 7) and others == [None, None]
    values = drawn.reshape(-1).double()
    assert sorted(set(values.tolist())) == pytest.approx([0.0, 1 / 0.9], rel=1e-4)
    assert_mean_is((values == 0).double(), 6554 / 65536)
    assert_mean_is(values, 1.0)


def test_rows_and_passes_have_masks_of_their_own():
    networks = stack((0.0, 0.5, 0.5))
    x = np.repeat(batch()[0][:, :1], 30, axis=1)
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
    step = {"rate": 0.1, "decay": 0.01}
    together.descend(x, actions, targets, **step)
    alone.descend(x[1:2], actions[1:2], targets[1:2], **step)
    for pair, single in zip(_pairs(together), _pairs(alone), strict=True):
        np.testing.assert_allclose(pair[0][1], single[0][0], atol=1e-5)
