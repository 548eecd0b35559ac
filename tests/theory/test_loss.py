"""The scale of a loss is what torch's own losses compute."""

import pytest
import torch
from torch import nn

from caveat.errors import ParameterError
from caveat.theory import Loss


def test_losses_are_what_torch_computes():
    predicted = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    observed = torch.zeros(6, 3)
    per_row = predicted.square().sum(-1)
    mse = Loss.mean_squared_error(3).scale * per_row.mean()
    torch.testing.assert_close(mse, nn.MSELoss()(predicted, observed))
    summed = Loss.squared_error().summed_over_rows(6).scale * per_row.mean()
    torch.testing.assert_close(summed, nn.MSELoss(reduction="sum")(predicted, observed))


def test_scales():
    assert Loss.half_squared_error().scale == 0.5
    assert Loss.half_squared_error() != Loss.negative_log_likelihood()
    with pytest.raises(ParameterError, match="scale"):
        Loss(0.0)
    with pytest.raises(ParameterError, match="n_outputs"):
        Loss.mean_squared_error(0)
