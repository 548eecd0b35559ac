"""Keep probabilities by name."""

import pytest
from torch import nn

from caveat.errors import ParameterError
from caveat.noise.priors import is_bias, listed, named_keep_probs


def test_biases_are_known_by_the_last_part_of_their_name():
    assert is_bias("0.bias") and is_bias("rnn.bias_hh_l0")
    assert not is_bias("bias_net.weight")


def test_names_are_those_of_the_model():
    model = nn.Sequential(nn.Linear(2, 1))
    assert named_keep_probs(model, {"0.weight": 0.5}) == {"0.weight": 0.5}
    with pytest.raises(ParameterError, match=r"'1.weight'; there are '0.weight'"):
        named_keep_probs(model, {"1.weight": 0.5})
    with pytest.raises(ParameterError, match=r"keep_prob\['0.weight'\]"):
        named_keep_probs(model, {"0.weight": 1.5})


def test_names_in_a_message():
    assert listed(["a", "b"]) == "'a', 'b'"
