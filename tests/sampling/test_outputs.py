"""The tensor that is read, and what is said if it is not plain which."""

from types import SimpleNamespace

import pytest
import torch

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
