"""Nets that fit: they do, and an interrupted training goes on to the same weights."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from caveat.papers.series import nets
from caveat.papers.series.fitted import FittedNet
from caveat.papers.series.nets import train

X = np.linspace(-1.7, 1.7, 90)
Y = np.sin(12 * X)  # six seasons and a half
RELU = FittedNet("net", "relu", 3, 0.1, 2e-3, batch_size=45, n_steps=300, width=128)
TANH = replace(RELU, activation="tanh", scale=10.0)


@pytest.mark.parametrize("net", [RELU, TANH], ids=["relu", "tanh"])
def test_a_season_is_learnt_with_dropout(net, tmp_path):
    module = train(net, X, Y, tmp_path / "net.safetensors")
    with torch.no_grad():
        found = module(torch.from_numpy(X.astype(np.float32))[:, None])[:, 0]
    assert np.sqrt(np.square(found.numpy() - Y).mean()) < 0.4  # the season has 0.7


def test_an_interrupted_training_goes_on_to_the_same_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(nets, "_SAVED_EVERY", 4)
    net = replace(RELU, width=16, n_steps=10)
    whole = train(net, X, Y, tmp_path / "whole.safetensors")
    path, identity = tmp_path / "parts.safetensors", nets._identity
    rows = torch.from_numpy(np.stack([X, Y], 1).astype(np.float32))
    state = net.first(rows)
    reached = next(nets.advance(net, state, rows))
    assert reached.step == 4
    nets._save(path, identity(net, rows), reached)
    parts = train(net, X, Y, path)
    for a, b in zip(whole.parameters(), parts.parameters(), strict=True):
        assert torch.equal(a, b)


def test_another_length_is_another_training():
    assert RELU.identity() != replace(RELU, n_steps=200).identity()
