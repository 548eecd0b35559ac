"""Decisions rank rows by the scores of evaluation."""

from caveat import decisions, evaluation


def test_they_are_the_same():
    assert decisions.score_of is evaluation.score_of
