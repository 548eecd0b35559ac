"""Scores by which decisions rank rows: those of :mod:`caveat.evaluation.scores`."""

from caveat.evaluation.scores import Score, checked_scores, score_of

__all__ = ["Score", "checked_scores", "score_of"]
