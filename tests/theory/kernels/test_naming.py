"""Non-linearities by name."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.nn import functional

from caveat.errors import InputTypeError, ParameterError
from caveat.theory.kernels import LeakyRelu, Smooth, as_nonlinearity
from caveat.theory.kernels.naming import NAMED, tanh_gelu


@pytest.mark.parametrize(
    ("name", "torch_function"),
    [
        ("relu", torch.relu),
        ("leaky_relu", functional.leaky_relu),
        ("abs", torch.abs),
        ("sign", torch.sign),
        ("erf", torch.erf),
        ("probit", torch.special.ndtr),
        ("cos", torch.cos),
        ("sin", torch.sin),
        ("square", torch.square),
        ("tanh", torch.tanh),
        ("sigmoid", torch.sigmoid),
        ("gelu", functional.gelu),
        ("silu", functional.silu),
        ("softplus", functional.softplus),
    ],
)
def test_functions_are_those_of_torch(name, torch_function):
    z = np.linspace(-4, 4, 41)
    assert_allclose(NAMED[name](z), torch_function(torch.tensor(z)), atol=1e-14)


def test_gelu_by_tanh_is_that_of_torch():
    z = torch.linspace(-4, 4, 41, dtype=torch.float64)
    assert_allclose(tanh_gelu(z.numpy()), functional.gelu(z, approximate="tanh"))


def test_anything_that_names_one():
    sigma = LeakyRelu(0.3)
    assert as_nonlinearity(sigma) is sigma
    assert as_nonlinearity("step")(np.array([-1.0, 0.0, 2.0])).tolist() == [0, 0, 1]
    assert as_nonlinearity(np.arctan) == Smooth(np.arctan)


def test_bad_names():
    with pytest.raises(ParameterError, match=r"'relu', 'leaky_relu'.*Got 'rleu'"):
        as_nonlinearity("rleu")
    with pytest.raises(InputTypeError, match="Got 3 of type int"):
        as_nonlinearity(3)
    with pytest.raises(InputTypeError, match="LeakyRelu"):
        as_nonlinearity(LeakyRelu)
