"""The tensor that is read, and what is said if it is not plain which."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

import caveat
from caveat.errors import InputTypeError, ShapeError
from caveat.sampling.outputs import Picker, find_output, same_shape
from caveat.sampling.trees import flatten

Y, Z = torch.zeros(2, 3), torch.ones(2, 3)


def picked(returned, output=None):
    return Picker("regress", output).pick(*flatten(returned))


@pytest.mark.parametrize("wrap", [lambda y: y, lambda y: (y,), lambda y: [[y]]])
def test_a_single_tensor(wrap):
    assert picked(wrap(Y)) is Y


def test_logits_are_found():
    assert picked({"loss": Z, "logits": Y}) is Y
    assert find_output(SimpleNamespace(logits=Y)) is Y


def test_the_choice_of_the_user():
    assert picked((Y, Z), lambda out: out[1]) is Z


def test_it_is_not_guessed():
    with pytest.raises(InputTypeError, match=r"regress\(.*out\['a'\]"):
        picked({"a": Y, "b": Z})
    with pytest.raises(InputTypeError, match=r"returned tuple(.|\n)*out\[0\]"):
        picked((Y, Z))


def test_choices_that_cannot_be():
    with pytest.raises(InputTypeError, match="Got str"):
        picked((Y, Z), lambda out: "first")
    with pytest.raises(InputTypeError, match="a function of what the model returns"):
        Picker("regress", 1)
    with pytest.raises(ShapeError, match="single number"):
        picked(Y.sum())


def test_position_of_a_leaf():
    leaves, structure = flatten((Y, Z))
    assert Picker("m", lambda out: out[1]).position(leaves, structure) == 1
    assert Picker("m", lambda out: out[1] * 2).position(leaves, structure) is None


def test_draws_must_have_one_shape():
    assert same_shape(Y, None, 0) == Y.shape
    with pytest.raises(ShapeError, match=r"Draw 3 has the shape \(1, 3\)"):
        same_shape(Y[:1], Y.shape, 3)


class NamedByItsDraw(nn.Module):
    """Says by the name of its output where it left off."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 1)

    def forward(self, x):
        y = self.last(nn.functional.dropout(self.first(x), 0.5, self.training))
        return {"early" if y.sum() > 0 else "late": y}


@pytest.mark.parametrize("warm", [False, True])
def test_draws_made_up_in_different_ways_are_refused(warm):
    torch.manual_seed(0)
    mc = caveat.MCDropout(NamedByItsDraw(), seed=0)
    x = torch.linspace(-1, 1, 12).view(4, 3)
    if warm:
        mc.draws(x, n_draws=1)
    with pytest.raises(ShapeError, match="made up in another way"):
        mc.draws(x, n_draws=40)


def test_a_division_by_zero_is_not_a_closed_form():
    class ByZero(nn.Sequential):
        def forward(self, x):
            return super().forward(x) / 0

    net = ByZero(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    draws = caveat.MCDropout(net, seed=0).draws(torch.ones(2, 3), n_draws=3)
    assert not draws.isfinite().any()
    with pytest.raises(caveat.errors.CaveatError):
        caveat.MCDropout(net, seed=0).regress(torch.ones(2, 3), precision=1.0)
