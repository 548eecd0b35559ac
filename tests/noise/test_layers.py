"""Rows of weights: what a unit feeds, for groups and kernels of all kinds."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from caveat.noise.layers import along_rows, n_rows, rows, run_with, unit_axis

LAYERS = {
    "linear": (nn.Linear(6, 4), (2, 6)),
    "conv1d": (nn.Conv1d(6, 4, 3, stride=2), (2, 6, 9)),
    "groups": (nn.Conv2d(6, 4, (3, 2), groups=2, padding=1), (2, 6, 5, 5)),
    "depthwise": (nn.Conv2d(6, 12, 3, groups=6), (2, 6, 5, 5)),
    "circular": (
        nn.Conv3d(6, 4, 2, groups=2, padding=1, padding_mode="circular"),
        (2, 6, 3, 3, 3),
    ),
}
over_layers = pytest.mark.parametrize("kind", LAYERS)


@over_layers
def test_a_mask_on_rows_is_a_mask_on_units(kind):
    layer, shape = LAYERS[kind]
    x, mask = torch.randn(shape), torch.rand(n_rows(layer))
    view = [1] * len(shape)
    view[unit_axis(layer)] = -1
    on_weights = run_with(layer, x, layer.weight * along_rows(layer, mask), layer.bias)
    assert_close(on_weights, layer(x * mask.view(view)))


@over_layers
def test_a_row_is_what_is_lost_with_a_unit(kind):
    layer, _ = LAYERS[kind]
    found = rows(layer, layer.weight)
    assert found.shape == (6, layer.weight.numel() // 6)
    for unit in range(6):
        only = torch.zeros(6)
        only[unit] = 1.0
        kept = layer.weight * along_rows(layer, only)
        assert_close(kept.square().sum(), found[unit].square().sum())
        assert_close(kept.sum(), found[unit].sum())


@over_layers
def test_axes_in_front_are_kept(kind):
    layer, _ = LAYERS[kind]
    several = torch.randn(3, *layer.weight.shape)
    each = torch.stack([rows(layer, weight) for weight in several])
    assert torch.equal(rows(layer, several), each)
    values = torch.randn(3, 6)
    each = torch.stack([along_rows(layer, value) for value in values])
    assert torch.equal(along_rows(layer, values), each)


@over_layers
def test_the_unit_axis_holds_for_inputs_and_outputs(kind):
    layer, shape = LAYERS[kind]
    axis = unit_axis(layer)
    assert shape[axis] == 6
    assert layer(torch.zeros(shape)).shape[axis] == layer.weight.shape[0]
