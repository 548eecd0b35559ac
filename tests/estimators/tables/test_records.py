"""What is told of a choice."""

from caveat.estimators.tables.records import Candidate, say, told


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
