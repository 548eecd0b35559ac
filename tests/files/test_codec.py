"""Values there and back through JSON and tensors."""

import json
import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from caveat.errors import InputTypeError, ParameterError
from caveat.files.codec import Codec, FileKind

CODEC = Codec(
    {
        "pair": FileKind(
            complex,
            lambda z: {"a": z.real, "b": z.imag},
            lambda v: complex(v["a"], v["b"]),
        )
    }
)


def again(value):
    tensors = {}
    stored = json.loads(json.dumps(CODEC.apart(value, "v", tensors), allow_nan=False))
    return CODEC.together(stored, tensors)


@pytest.mark.parametrize(
    "value",
    [
        *(
            None,
            True,
            3,
            10**30,
            -0.1,
            "é",
            [],
            (),
            {},
            [1, (2, [3])],
            {1: "a", "1": 2},
        ),
        *({(1, 2): None}, {"kind": "x", "fields": {}}, math.inf, -math.inf, 1 + 2j),
        (1 + 2j, [3j]),
    ],
    ids=repr,
)
def test_values(value):
    found = again(value)
    assert found == value and type(found) is type(value)


def test_not_a_number():
    assert math.isnan(again(math.nan))
    assert again(np.float32(1.5)) == 1.5 and again(np.bool_(True)) is True


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(6.0).reshape(2, 3)[:, ::2],
        np.zeros((0, 3)),
        np.array(2.5),
        np.array([1, 2], dtype=np.int32),
        np.array([True, False]),
        np.array([1, 2], dtype=">f8"),
        np.array(["a", "bcd"]),
        np.array(["a", None, 3], dtype=object),
        np.array([[(1, 2)], [None]], dtype=object)[:, 0],
        np.array([1, 2], dtype=np.uint16),
    ],
    ids=repr,
)
def test_arrays(array):
    found = again(array)
    assert found.dtype == array.dtype.newbyteorder("=") and found.shape == array.shape
    assert found.tolist() == array.tolist()
    if array.flags.f_contiguous and array.ndim == 2 and array.size:
        assert found.flags.f_contiguous


def test_tensors_and_sparse_matrices():
    assert torch.equal(again(torch.arange(3)), torch.arange(3))
    for made in (sp.csr_matrix, sp.csr_array):
        found = again(made(np.eye(3)[:, :2]))
        assert type(found) is made and np.array_equal(found.toarray(), np.eye(3)[:, :2])


def test_what_is_not_known_is_refused():
    for value in (object(), {1, 2}, lambda: 3, np.datetime64("2020-01-01")):
        with pytest.raises(InputTypeError):
            again(value)
    with pytest.raises(InputTypeError, match=r"v\.1 must be"):
        again([1, object()])
    for stored in ({"kind": "pair"}, {"a": 1}, {"tuple": [], "float": "inf"}):
        with pytest.raises(ParameterError, match="known kind"):
            CODEC.together(stored, {})
    with pytest.raises(KeyError):
        CODEC.together({"kind": "os", "fields": {}}, {})
