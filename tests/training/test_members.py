"""Members: penalties of the prior; geometry; rows."""

import numpy as np
import pytest
import torch

from caveat.errors import ParameterError, ShapeError
from caveat.theory import HALF_SQUARED_ERROR, model_precision
from caveat.training import GaussianWithPrecision, Member, NetworkSpec, Rows, Schedule
from caveat.training.members import Architecture


def test_prior_becomes_penalties():
    spec = NetworkSpec((5,), drop_rate=0.5, input_drop_rate=0.1, lengthscale=0.3)
    member = Member.of(spec, "a", precision=4.0, n_train=70)
    for rate, penalty in zip(member.drop_rates, member.l2_penalties, strict=True):
        tau = model_precision(
            l2_penalty=penalty,
            lengthscale=0.3,
            keep_prob=1 - rate,
            n_train=70,
            loss=HALF_SQUARED_ERROR,
            inverted=True,
        )
        assert tau == pytest.approx(4.0)
    assert member.bias_l2_penalty == pytest.approx(0.9 * member.l2_penalties[0])
    assert member.kl_share == pytest.approx(1 / (4.0 * 70))


def test_steps_are_those_of_its_own_rows():
    data = [Rows.of(np.zeros((n, 2)), np.zeros(n)) for n in (10, 65)]
    spec = NetworkSpec(schedule=Schedule(epochs=3, keep_last=True))
    assert Member("a", spec, (0.0, 0.0), data=1).n_steps(data) == 9


def test_geometry():
    spec = NetworkSpec((5, 6), objective=GaussianWithPrecision())
    shape = Architecture.of(spec, 3, 2)
    assert shape.shapes == [(3, 5), (5, 6), (6, 4)]
    assert shape.fan_ins == [3, 5, 6]
    assert shape.n_parameters == 4 * 5 + 6 * 6 + 7 * 4
    with pytest.raises(ParameterError, match=r"activation must be .*'relu'.*'swish'"):
        Architecture(1, (2,), 1, "swish")
    with pytest.raises(ParameterError, match="width"):
        Architecture(1, (0,), 1)


def test_rows_have_two_axes():
    rows = Rows.of([[1.0, 2.0]], [3.0])
    assert rows.x.dtype == rows.y.dtype == torch.float32 and len(rows) == 1
    assert rows.y.shape == (1, 1)
    with pytest.raises(ShapeError, match="rows"):
        Rows(torch.zeros(3), torch.zeros(3, 1))
