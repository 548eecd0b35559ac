"""Active learning: a loop that asks for the labels that are worth most."""

from caveat.decisions.active.curve import LearningCurve
from caveat.decisions.active.learner import ActiveLearner

__all__ = ["ActiveLearner", "LearningCurve"]
