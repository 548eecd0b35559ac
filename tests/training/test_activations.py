"""Non-linearities: value, slope and module agree."""

import pytest
import torch

from caveat.errors import ParameterError
from caveat.training.activations import ACTIVATIONS, activation


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_value_and_slope_are_those_of_the_module(name):
    own = activation(name)
    z = torch.linspace(-3, 3, 13, dtype=torch.float64) + 0.01
    z.requires_grad_()
    expected = own.module()(z)
    (slope,) = torch.autograd.grad(expected.sum(), z)
    value, found = torch.empty(13).double(), torch.empty(13).double()
    own.function(z.detach(), value)
    own.slope(z.detach(), value, found)
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(found, slope)


def test_other_names_are_refused():
    with pytest.raises(ParameterError, match=r"'relu'.*Got 'swish'"):
        activation("swish")
