"""What is told of a choice."""

import numpy as np

from caveat.estimators.tables.records import Candidate, is_above_zero, say, told


def test_one_line_with_those_that_count():
    line = told([Candidate("a", -1.0, 0.75), Candidate("b", -2.0, 0.0)])
    assert "0.75 a (-1.000)" in line and " b " not in line and "2 candidates" in line
    assert "\n" not in line


def test_nothing_is_told_as_such():
    assert told([Candidate("a", -1.0, 0.0)]).startswith("nothing")


def test_it_is_said_where_a_bar_would_be(capsys):
    say("quiet", False)
    say("also quiet: no terminal", None)
    say("loud", True)
    assert capsys.readouterr().err == "loud\n"


def test_a_mean_is_above_zero_only_beyond_its_error():
    values = np.random.default_rng(0).normal(size=10_000)
    values -= values.mean()
    error = values.std() / 100
    assert not is_above_zero(values + 1.9 * error)
    assert is_above_zero(values + 2.1 * error)
    assert not is_above_zero(np.array([1.0, 1.0]))  # too few to say
    weight = np.where(np.arange(10_000) % 2, 2.0, 0.0)  # half of the rows
    half = values[1::2]
    own = half - half.mean()
    values = values.copy()
    values[1::2], values[::2] = own, 100.0  # those without a weight do not matter
    assert not is_above_zero(values + 1.9 * own.std() / np.sqrt(5000), weight)
    assert is_above_zero(values + 2.1 * own.std() / np.sqrt(5000), weight)
