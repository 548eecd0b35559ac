"""Training as Caffe does it, and going on with it."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch.nn import functional as F

from caveat.papers.series import nets
from caveat.papers.series.nets import Net, advance, train
from caveat.training.streams import DropFactors, generator

X = np.linspace(-1.5, 1.5, 11)
Y = np.sin(2 * X)
SMALL = Net(
    "small",
    "relu",
    2,
    0.25,
    0.05,
    weight_decay=1e-2,
    batch_size=4,
    n_steps=7,
    gamma=0.5,
    width=6,
)


def rows_of(x=X, y=Y):
    return torch.from_numpy(np.stack([x, y], 1).astype(np.float32))


def factors_of(net, step):
    """Masks over keep probability: the noise of a step, per weight layer."""
    noise = DropFactors([net.spec.drop_rates], net.architecture.fan_ins)
    raw = noise.raw(generator(0, 1, step), 1, net.batch_size)
    return [f if f is None else f[0].clone() for f in
            noise.factors(torch.from_numpy(raw), net.batch_size)]  # fmt: skip


def by_autograd(net):
    """The same training, written down step by step."""
    first = net.module(net.first(rows_of()).parameters)
    linear = [m for m in first if isinstance(m, torch.nn.Linear)]
    weights = [m.weight.detach().clone().requires_grad_() for m in linear]
    biases = [m.bias.detach().clone().requires_grad_() for m in linear]
    moving = [torch.zeros_like(p) for p in (*weights, *biases)]
    rows, act = rows_of(), {"relu": torch.relu, "tanh": torch.tanh}[net.activation]
    for step in range(net.n_steps):
        chosen = [
            (step * net.batch_size + k) % len(rows) for k in range(net.batch_size)
        ]
        h, masks = rows[chosen, :1], factors_of(net, step)
        for k, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            h = act(h) if k else h
            h = F.linear(h if masks[k] is None else h * masks[k], weight, bias)
        loss = (h - rows[chosen, 1:]).square().sum() / (2 * net.batch_size)
        parameters = [*weights, *biases]
        rate = net.rate * (1 + net.gamma * step) ** -net.power
        with torch.no_grad():
            slopes = torch.autograd.grad(loss, parameters)
            for k, (p, slope) in enumerate(zip(parameters, slopes, strict=True)):
                own = rate * (1 if k < len(weights) else 2)
                moving[k] = 0.9 * moving[k] + own * (slope + net.weight_decay * p)
                p -= moving[k]
    return weights, biases


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_training_is_that_of_caffe(activation, tmp_path):
    net = replace(SMALL, activation=activation)
    module = train(net, X, Y, tmp_path / "net.safetensors")
    linear = [m for m in module if isinstance(m, torch.nn.Linear)]
    for layer, weight, bias in zip(linear, *by_autograd(net), strict=True):
        torch.testing.assert_close(layer.weight, weight, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(layer.bias, bias, rtol=1e-4, atol=1e-6)


def test_masks_drop_hidden_units_only_at_their_rate():
    net = replace(SMALL, width=200)
    masks = factors_of(net, 0)
    assert masks[0] is None
    dropped = torch.stack([m == 0 for m in masks[1:]]).double()
    assert abs(dropped.mean() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / dropped.numel())
    for mask in masks[1:]:
        assert mask.max().item() == pytest.approx(1 / 0.75)
    assert not torch.equal(masks[1], factors_of(net, 1)[1])


def test_module_has_dropout_after_hidden_units_only():
    module = SMALL.module(SMALL.first(rows_of()).parameters)
    kinds = [type(m).__name__ for m in module]
    hidden = ["ReLU", "Dropout", "Linear"]
    assert kinds == ["Linear", *hidden, *hidden]
    assert all(m.p == 0.25 for m in module if isinstance(m, torch.nn.Dropout))


def test_first_weights_are_uniform_with_variance_one_over_fan_in():
    net = replace(SMALL, width=300)
    for layer in net.module(net.first(rows_of()).parameters):
        if not isinstance(layer, torch.nn.Linear):
            continue
        fan_in = layer.in_features
        assert layer.weight.abs().max() <= math.sqrt(3 / fan_in)
        squares = layer.weight.detach().square().flatten() * fan_in
        error = squares.std() / math.sqrt(len(squares))
        assert abs(squares.mean() - 1) < 5 * error
        assert not layer.bias.any()


def test_an_interrupted_training_goes_on_to_the_same_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(nets, "_SAVED_EVERY", 2)
    whole = train(SMALL, X, Y, tmp_path / "whole.safetensors")
    path = tmp_path / "parts.safetensors"
    train(replace(SMALL, n_steps=3), X, Y, path)
    with safe_open(path, "pt") as file:
        assert file.metadata()["step"] == "3"
    begun = []
    monkeypatch.setattr(
        nets, "advance", lambda n, s, r: begun.append(s.step) or advance(n, s, r)
    )
    parts = train(SMALL, X, Y, path)
    assert begun == [3]
    for a, b in zip(whole.parameters(), parts.parameters(), strict=True):
        assert torch.equal(a, b)
    again = train(SMALL, X, Y, path)
    assert begun == [3, 7]
    assert torch.equal(again[0].weight, whole[0].weight)


@pytest.mark.parametrize("change", [{"rate": 0.01}, {"drop_rate": 0.5}, {"n_steps": 5}])
def test_what_is_not_the_same_training_begins_anew(change, tmp_path):
    path = tmp_path / "net.safetensors"
    train(SMALL, X, Y, path)
    other = replace(SMALL, **change)
    fresh = train(other, X, Y, tmp_path / "fresh.safetensors")
    assert torch.equal(train(other, X, Y, path)[0].weight, fresh[0].weight)


def test_other_rows_begin_anew(tmp_path):
    path = tmp_path / "net.safetensors"
    train(SMALL, X, Y, path)
    fresh = train(SMALL, X, -Y, tmp_path / "fresh.safetensors")
    assert torch.equal(train(SMALL, X, -Y, path)[0].weight, fresh[0].weight)
